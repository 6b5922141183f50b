// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

private func hex(_ bytes: [UInt8]) -> String {
  bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
}

private func fields(_ pairs: [(String, String)]) -> [String] {
  pairs.filter { $0.1 != "0" && $0.1 != "" }.map { "\($0.0)=\($0.1)" }
}

extension Hello {
  var fields: [String] {
    LongLinkCoreTests.fields([
      ("version", "\(version)"), ("features", "\(features)"), ("max_body", "\(maxBody)"),
      ("max_in_flight", "\(maxInFlight)"), ("heartbeat_interval", "\(heartbeatInterval)"),
      ("heartbeat_timeout", "\(heartbeatTimeout)"), ("credential", hex(credential)),
      ("name", name), ("stream_credit", "\(streamCredit)"),
      ("client_id", hex(clientID?.bytes ?? [])),
    ])
  }
}

extension Welcome {
  var fields: [String] {
    LongLinkCoreTests.fields([
      ("version", "\(version)"), ("features", "\(features)"), ("max_body", "\(maxBody)"),
      ("max_in_flight", "\(maxInFlight)"), ("heartbeat_interval", "\(heartbeatInterval)"),
      ("heartbeat_timeout", "\(heartbeatTimeout)"), ("name", name),
      ("stream_credit", "\(streamCredit)"),
      ("credential_expires", "\(credentialExpires)"),
      ("key_space", hex(keySpace?.bytes ?? [])), ("key_retention", "\(keyRetention)"),
      ("key_time", "\(keyTime)"),
    ])
  }
}

extension GoAway {
  var fields: [String] {
    LongLinkCoreTests.fields(
      [
        ("code", "\(code)"), ("reason", reason), ("requests_accepted", "\(requestsAccepted)"),
        ("spread", "\(spread)"), ("retry_after", "\(retryAfter)"),
      ] + alternatives.map { ("alternatives", $0) })
  }
}
