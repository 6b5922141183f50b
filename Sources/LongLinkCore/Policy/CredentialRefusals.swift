// SPDX-License-Identifier: Apache-2.0

/// The credentials that servers have refused, over connections or over short links.
///
/// One refusal is no reason to give up: the credential may have expired, and the application is
/// asked for another one. The second refusal is final if it is for the same credential, or if both
/// have code 403, which means that the server knows the client. If a credential that was shown
/// several times at once is refused several times, only the first refusal counts.
package struct CredentialRefusals: Equatable, Sendable {
  private struct Refusal: Equatable, Sendable {
    let credential: [UInt8]
    let code: ResponseCode
    /// The number of refusals before this one.
    let number: UInt64
    let isFinal: Bool
  }

  /// The last refusal that counts; nil if a server has accepted the client since, or after
  /// `forget`.
  private var last: Refusal?
  /// The number of refusals so far. A connection that shows a credential notes this number before.
  package private(set) var count: UInt64 = 0

  package init() {}

  /// The code of a refusal that is final; nil if there is none.
  package var finalCode: ResponseCode? { last.flatMap { $0.isFinal ? $0.code : nil } }

  /// Whether the next refusal counts, if its credential was shown when there were `known` refusals.
  /// Several refusals of a credential that was shown at one time count once.
  package func counts(since known: UInt64) -> Bool { last.map { known > $0.number } ?? true }

  /// Records that a server has refused a credential, which was shown when there were `known`
  /// refusals. With `hasOther`, the client has another link, so servers do accept it, and the
  /// refusal does not become final.
  package mutating func refused(
    _ credential: [UInt8], _ code: ResponseCode, since known: UInt64, hasOther: Bool = false
  ) {
    defer { count += 1 }
    guard counts(since: known) else { return }
    let isSame = last.map {
      $0.credential == credential || $0.code == .forbidden && code == .forbidden
    }
    last = Refusal(
      credential: credential, code: code, number: count,
      isFinal: last?.isFinal == true || isSame == true && !hasOther)
  }

  /// Whether a credential may be shown: no refusal is final, or the final one was a 401 for another
  /// credential. In the second case, that refusal is forgotten.
  package mutating func allows(_ credential: [UInt8]) -> Bool {
    guard let last, last.isFinal else { return true }
    guard last.code != .forbidden, last.credential != credential else { return false }
    self.last = nil
    return true
  }

  /// Whether the last refusal that counts was that of this credential.
  package func areOf(_ credential: [UInt8]) -> Bool { last?.credential == credential }

  /// Records that a server has accepted a credential.
  package mutating func accepted(_ credential: [UInt8]) {
    if areOf(credential) { last = nil }
  }

  /// Forgets the refusals, because the client was accepted in another way, the application asks
  /// again, or the servers have changed.
  package mutating func forget() { last = nil }
}
