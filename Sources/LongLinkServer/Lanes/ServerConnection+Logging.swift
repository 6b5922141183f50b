// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkCore
import LongLinkDriver

extension ServerConnection {
  /// Logs that the connection is open, and whose it is.
  func logOpening() {
    link.log(.info, "Connection opened", whose.merging(["tls": "\(tls)"]) { one, _ in one })
  }

  /// Logs why the connection has ended. One that never opened, such as that of a port scanner, is
  /// of no interest unless it broke a rule; a short link is one request.
  func logEnd(_ reason: CloseReason) {
    guard let openedAt else { return reason.log(endOf: link, usual: .debug) }
    reason.log(endOf: link, whose.merging(work(since: openedAt)) { one, _ in one })
  }

  /// The version of TLS, such as `1.3`, as in the line "Listening".
  private var tls: Substring {
    let version = link.security?.version ?? "off"
    return version.hasPrefix("TLSv") ? version.dropFirst(4) : version[...]
  }

  /// The client, as the log shows it.
  private var whose: Logger.Metadata {
    var whose: Logger.Metadata = [:]
    let name = link.connection.agreement.name
    if !name.isEmpty { whose["name"] = "\(PeerText(name))" }
    whose["client"] = client.map { "\($0.id)" }
    whose["principal"] = peer.principalRecord.map { "\(PeerText($0.name))" }
    return whose
  }

  /// How long the connection was open, and what it was used for.
  private func work(since opened: LinkInstant) -> Logger.Metadata {
    [
      "ageMs": .milliseconds(lane.loop.now - opened), "requests": "\(link.counters.handled)",
      "refused": "\(link.counters.refused)",
    ]
  }
}
