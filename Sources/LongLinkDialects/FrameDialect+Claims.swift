// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// The types and serials that make a frame one of a particular kind.
struct DialectClaim {
  /// The readable name of the kind.
  let name: String
  /// The types; nil if the layout has no type, so that any frame matches.
  let types: ClosedRange<UInt32>?
  let serials: ClosedRange<UInt32>

  private static let all: ClosedRange<UInt32> = 0...UInt32.max

  init(_ name: String, _ types: ClosedRange<UInt32>?, _ serials: ClosedRange<UInt32>? = nil) {
    self.name = name
    self.types = types
    self.serials = serials ?? Self.all
  }

  func overlaps(_ other: DialectClaim) -> Bool {
    (types ?? Self.all).overlaps(other.types ?? Self.all) && serials.overlaps(other.serials)
  }
}

extension FrameDialect {
  /// Whether a side can send requests.
  package func maySendRequests(_ role: Role) -> Bool { serials[role] != nil }

  /// The claims for the frames of a side, each with the part of the description that makes it.
  /// Frames without a claim are requests or responses.
  func claims(from role: Role) -> [(part: String, claim: DialectClaim)] {
    let hasType = layout.shape(from: role).field { $0 == .type } != nil
    func types(_ range: ClosedRange<UInt32>) -> ClosedRange<UInt32>? { hasType ? range : nil }
    let (own, other) = role == .client ? ("client", "server") : ("server", "client")
    var claims: [(String, DialectClaim)] = []
    if let ping = heartbeat[role] {
      let claim = DialectClaim("a ping", types(ping.type...ping.type), ping.serials)
      claims.append(("heartbeat.\(own)", claim))
    }
    if let ping = heartbeat[role.peer], let answer = ping.answer {
      let claim = DialectClaim("the answer to a ping", types(answer...answer), ping.serials)
      claims.append(("heartbeat.\(other)", claim))
    }
    if maySendRequests(role), let cancel {
      claims.append(("cancel", DialectClaim("a cancel", types(cancel.type...cancel.type))))
    }
    let pushPart = role == .client ? "pushes.fromClient" : "pushes.fromServer"
    for range in pushes[role] {
      claims.append((pushPart, DialectClaim("a push", types(range))))
    }
    if let asked = serials[role.peer] {
      switch responseType {
      case .fixed(let type):
        let claim = DialectClaim("a response", types(type...type), asked)
        claims.append(("responseType", claim))
      case .absent:
        claims.append(("responseType", DialectClaim("a response", nil, asked)))
      case .echo, .offset:
        break
      }
    }
    return claims
  }
}
