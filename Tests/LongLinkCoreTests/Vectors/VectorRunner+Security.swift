// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

// Who a client is, and a peer that speaks TLS where none is expected.
extension VectorRunner {
  /// What a client has shown: a credential, which may be empty, or no hello.
  func observeIdentification(_ credential: [UInt8]?) {
    seen.append(Expectation(name: "identify", body: credential))
  }

  /// What a server answers to a renewal.
  func observeAnswer(_ frame: RawFrame) {
    guard let renewed: Renewed = try? frame.decoded() else {
      return problems.append("unexpected frame \(frame)")
    }
    var fields = ["code=\(frame.tag)"]
    if renewed.credentialExpires > 0 {
      fields.append("credential_expires=\(renewed.credentialExpires)")
    }
    replies.append(Expectation(name: "renewal", fields: fields, isReply: true))
  }

  /// What a client has learned of its renewal.
  func observeRenewal(_ answer: RenewalAnswer) {
    var fields = ["code=\(answer.code.rawValue)"]
    let expires = side.connection.agreement.credentialExpires
    if answer.code == .ok, expires > 0 { fields.append("credential_expires=\(expires)") }
    if !answer.reason.isEmpty { fields.append("reason=\(answer.reason)") }
    seen.append(Expectation(name: "renewed", fields: fields))
  }

  /// Lets the receiver's application accept the client, or not. Until then nothing has come of what
  /// the client has sent.
  func decide(_ step: Vector.Step) {
    let seen = seen.filter { trailingLeft == 0 || $0 != VectorRunner.trailingDrop }
    if !seen.isEmpty || !replies.isEmpty {
      problems.append("acted on before the client is accepted: \((seen + replies).map(\.summary))")
    }
    switch step {
    case .admit(let time, let once): side.admit(expiresIn: time, once: once ? Vector.terms : nil)
    case .refuse(let code): side.turnAway(ResponseCode(wire: code))
    default: break
    }
  }

  /// An end that is no violation, with the code of the goaway, if one was sent.
  func ending(_ name: String) -> Expectation {
    let fields = goaway.map { ["code=\($0.code)", "requests_accepted=\($0.requestsAccepted)"] }
    return Expectation(name: name, fields: fields ?? [])
  }
}
