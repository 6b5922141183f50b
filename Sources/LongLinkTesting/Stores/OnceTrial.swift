// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkOnceStore

/// One part of an `OnceStoreCheck`, with a store of its own.
final class OnceTrial {
  var store: any OnceStore
  let retention: Int64
  private let pass: @Sendable (Duration) async throws -> Void
  private var numbers: Int64 = 0
  private(set) var findings: [String] = []

  static let scope = OnceScope(principal: "check")
  static let key = Array("0123456789abcdef".utf8)
  static let fingerprint = fingerprint(of: 1)
  /// A retention that does not pass while the check runs.
  static let long: Int64 = 3_600_000
  static let answer = OnceAnswer(code: .ok, body: [0, 1, 0xFF, 0])

  init(
    _ store: any OnceStore, retention: Int64,
    pass: @escaping @Sendable (Duration) async throws -> Void
  ) {
    self.store = store
    self.retention = retention
    self.pass = pass
  }

  static func fingerprint(of number: UInt8) -> OnceFingerprint {
    OnceFingerprint(bytes: (0..<32).map { number &+ $0 })!
  }

  /// A token that no begin has had.
  func token(
    _ scope: OnceScope = OnceTrial.scope, _ type: MessageType = 7, _ key: [UInt8] = OnceTrial.key
  ) -> OnceToken {
    numbers += 1
    // Both signs and the high bits, as random numbers have them.
    let number = numbers % 2 == 0 ? Int64.max - numbers : Int64.min + numbers
    return OnceToken(scope: scope, type: type, key: key, number: number)
  }

  func attempt(
    _ token: OnceToken, _ fingerprint: OnceFingerprint = OnceTrial.fingerprint,
    ahead: Int64 = 0, retention: Int64 = OnceTrial.long, runsAgain: Bool = false
  ) async throws -> OnceAttempt {
    let status = try await store.status()
    return OnceAttempt(
      token: token, fingerprint: fingerprint, keyTime: status.time + ahead, retention: retention,
      storeName: status.name, runsAgain: runsAgain)
  }

  func begin(
    _ token: OnceToken, _ fingerprint: OnceFingerprint = OnceTrial.fingerprint,
    ahead: Int64 = 0, retention: Int64 = OnceTrial.long, runsAgain: Bool = false
  ) async throws -> OnceFinding {
    try await store.begin(
      try await attempt(
        token, fingerprint, ahead: ahead, retention: retention, runsAgain: runsAgain))
  }

  /// Lets some of the retention pass.
  func pass(_ share: Double) async throws {
    try await pass(.milliseconds(Double(retention) * share))
  }

  func expect<Value: Equatable>(_ value: Value, _ wanted: Value, _ what: String) {
    if value != wanted { findings.append("\(what): \(value), instead of \(wanted)") }
  }

  func expect(_ holds: Bool, _ what: String) {
    if !holds { findings.append(what) }
  }
}
