// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkTransport
internal import NIOCore

/// Compares the tokens of requests with the right one, and stops addresses that guess.
struct TokenGuard {
  enum Verdict: Equatable {
    /// The request has no token.
    case missing
    case right
    case wrong
    /// The address has shown too many wrong tokens, and may try again after so many seconds.
    case throttled(seconds: Int64)
  }

  /// The wrong tokens after which an address has to wait, and the time in which they count.
  private static let mostWrong = 10
  private static let window = TimeAmount.seconds(60)
  /// The most addresses that are kept. Beyond it, one is forgotten: first one that need not wait,
  /// and of these the one whose last wrong token is oldest.
  private static let mostAddresses = 1_024

  private let token: [UInt8]
  /// The instants of the last wrong tokens of each address.
  private var wrong: [LongLinkTransport.SocketAddress.Group?: [NIODeadline]] = [:]

  init(_ token: String) {
    self.token = Array(token.utf8)
  }

  /// Judges the header `Authorization` of a request.
  mutating func judge(
    _ authorization: String?, from group: LongLinkTransport.SocketAddress.Group?,
    at now: NIODeadline
  ) -> Verdict {
    guard let authorization else { return .missing }
    // Whoever is on this machine has all addresses of it.
    let group = group?.isLoopback == true ? .ipv6Loopback : group
    let recent = (wrong[group] ?? []).filter { now - $0 < Self.window }
    if recent.count >= Self.mostWrong {
      let left = Self.window - (now - recent[0])
      return .throttled(seconds: max(1, (left.nanoseconds + 999_999_999) / 1_000_000_000))
    }
    if isRight(authorization) { return .right }
    if wrong[group] == nil, wrong.count >= Self.mostAddresses { forgetOne(at: now) }
    wrong[group] = recent + [now]
    return .wrong
  }

  private mutating func forgetOne(at now: NIODeadline) {
    func rank(_ instants: [NIODeadline]) -> (Int, NIODeadline) {
      let waits = instants.count >= Self.mostWrong && now - instants[0] < Self.window
      return (waits ? 1 : 0, instants.last ?? now)
    }
    let least = wrong.min { rank($0.value) < rank($1.value) }
    if let least { wrong[least.key] = nil }
  }

  private func isRight(_ authorization: String) -> Bool {
    let parts = authorization.split(maxSplits: 1) { $0 == " " || $0 == "\t" }
    guard parts.count == 2 else { return false }
    let value = parts[1].drop { $0 == " " || $0 == "\t" }
    switch parts[0].lowercased() {
    case "bearer": return isEqual(Array(value.utf8))
    case "basic":
      // The user's name is of no interest.
      guard let pair = Base64Text.decoded(String(value)),
        let colon = pair.firstIndex(of: UInt8(ascii: ":"))
      else { return false }
      return isEqual(Array(pair[(colon + 1)...]))
    default: return false
    }
  }

  /// Compares in a time that depends on the lengths alone.
  private func isEqual(_ given: [UInt8]) -> Bool {
    guard given.count == token.count else { return false }
    return zip(given, token).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
#endif
