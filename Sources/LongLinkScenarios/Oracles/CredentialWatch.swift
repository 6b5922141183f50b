// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTesting

/// Watches the credentials of clients on the network: no server may end a connection with 401 while
/// the credential that it accepted last is still valid.
///
/// It reads the frames that both sides write. A validity counts from when the client sent the
/// credential; the server's own count begins later.
struct CredentialWatch {
  /// The last credential that a client sent on one connection.
  private struct Credential {
    /// When the client sent the credential.
    var sent: LinkInstant
    /// Until when the server's last acceptance is valid: `distantFuture` for no end, nil before the
    /// welcome.
    var end: LinkInstant?
  }

  private var credentials: [EndName: Credential] = [:]
  private(set) var broken: [(time: LinkInstant, detail: String)] = []

  /// Forgets all credentials: a machine's clock has jumped, so its timers fire early.
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
