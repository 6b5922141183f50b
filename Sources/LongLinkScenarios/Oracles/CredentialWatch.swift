// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTesting

/// Watches the credentials of clients on the network: no server may end a connection with 401
/// before the time is over for which it has accepted the last one.
///
/// It reads the frames that both sides write. The time counts from when the client sent the
/// credential, which is at most as late as the server's own.
struct CredentialWatch {
  /// The credential of one connection, by the client's end of its link.
  private struct Credential {
    /// When the client sent its last one.
    var sent: LinkInstant
    /// How long the server has accepted the one that it accepted last: until then, or without an
    /// end. Nil before the welcome.
    var end: LinkInstant?
  }

  private var credentials: [EndName: Credential] = [:]
  private(set) var broken: [(time: LinkInstant, detail: String)] = []

  /// The clocks of some machine have jumped, so that its timers fire early.
  mutating func clockJumped() {
    credentials = [:]
  }

  mutating func closed(_ name: EndName) {
    credentials[name] = nil
    credentials[name.other] = nil
  }

  mutating func sent(_ frame: FrameSplitter.Frame, _ name: EndName, at time: LinkInstant) {
    let whole = WireFrame(frame.kind, tag: frame.tag, serial: frame.serial, body: frame.body)
    switch frame.kind {
    case .hello:
      credentials[name] = Credential(sent: time)
    case .renewal where frame.tag == 0:
      credentials[name]?.sent = time
    case .welcome:
      guard let fields = whole.welcomeFields else { return }
      accepted(name.other, for: fields.credentialExpires)
    case .renewal where whole.code == .ok:
      guard let fields = whole.renewedFields else { return }
      accepted(name.other, for: fields.credentialExpires)
    case .goaway where whole.goAwayFields?.code == .unauthenticated:
      guard let end = credentials[name.other]?.end, time < end else { return }
      broken.append(
        (
          time,
          "link \(name.link): its server ended it, and had accepted its credential until \(end)"
        ))
    default:
      break
    }
  }

  private mutating func accepted(_ client: EndName, for time: Duration) {
    guard let sent = credentials[client]?.sent else { return }
    credentials[client]?.end = time == .zero ? .distantFuture : sent.advanced(by: time)
  }
}
