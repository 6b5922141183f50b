// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import LongLinkTransport

/// Explains to people why a link ends, from what its transport knows and its peer has said.
package struct LinkEnding {
  let role: Role
  /// The name of a short link's way; nil on a long link.
  let way: String?
  /// The peer's goaway, if it has sent one.
  let goaway: GoAway?
  /// Why the transport could not be secured, or is no longer secure; nil if it did not fail.
  let securityFailure: SecurityFailure?
  /// The transport's own text about its failure, which says more than an errno; nil if it has none.
  let failureText: String?
  /// Whether the transport is not secured yet.
  let isHandshaking: Bool
  /// The most time for the handshake, including the security's.
  let handshakeLimit: Duration

  /// The reason as text, with the name of a short link's way, the transport's own text, and the
  /// reason of the peer's goaway.
  package func detail(of reason: CloseReason) -> String {
    guard let goaway else { return ownDetail(of: reason) }
    let code = ResponseCode(wire: goaway.code)
    let announced = reason == .goneAway(code) ? "" : ", after a goaway with code \(code)"
    return ownDetail(of: reason) + announced + farewell
  }

  /// The reason of the peer's goaway, after a colon; empty if the goaway gives none.
  package var farewell: String {
    let text = goaway.map { PeerText($0.reason).description } ?? ""
    return text.isEmpty ? "" : ": \(text)"
  }

  private func ownDetail(of reason: CloseReason) -> String {
    if isHandshaking, reason.isLateHandshake {
      return """
        the \(peer) did not complete the handshake of TLS in time \
        (\(role == .client ? "timeouts.connect" : "timeouts.firstFrame"): \(handshakeLimit))
        """
    }
    if case .securityFailed = reason, let securityFailure {
      return way.map { "\($0): \(securityFailure)" } ?? "\(securityFailure)"
    }
    let text =
      switch reason {
      case .goneAway(let code): CloseReason.text(ofGoaway: code, from: peer)
      case .noResponse, .transport: way == nil ? reason.detail : failureText ?? reason.detail
      default: reason.detail
      }
    return way.map { "\($0): \(text)" } ?? text
  }

  private var peer: String { role == .client ? "server" : "client" }

  /// The security failure in a close reason, for a transport that reports none; nil without one.
  static func failure(_ reason: CloseReason?, of role: Role) -> SecurityFailure? {
    guard case .securityFailed(let code) = reason else { return nil }
    let (peer, side) = role == .client ? ("server", "client") : ("client", "server")
    let text =
      code == .securePeer
      ? """
      the \(peer) speaks TLS, and this \(side) does not: set `security`, or connect to another port
      """
      : "the connection was cut off within a frame, without the end that TLS protects"
    return SecurityFailure(code, text)
  }
}

extension LinkEnding {
  /// Collects what the link knows at the moment.
  init(of link: Link) {
    self.init(
      role: link.connection.settings.role, way: link.way, goaway: link.connection.goodbyes.ofPeer,
      securityFailure: link.securityFailure, failureText: link.layer?.failureText,
      isHandshaking: link.endedInHandshake || link.isAlive && link.layer?.isHandshaking == true,
      handshakeLimit: .nanoseconds(link.connection.settings.handshakeTimeout))
  }
}

extension CloseReason {
  /// Whether the peer took too long before the connection was open.
  fileprivate var isLateHandshake: Bool {
    switch self {
    case .handshakeTimeout: true
    case .violation(let violation): violation.rule == .firstFrameTimeout
    default: false
    }
  }
}
