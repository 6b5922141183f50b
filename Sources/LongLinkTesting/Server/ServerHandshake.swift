// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// The response of a ``SimulatedServer`` to a hello.
public struct ServerHandshake: Sendable {
  enum Step: Sendable {
    case welcome(WireFeatures, streamCredit: UInt32, credentialExpires: Duration?)
    case frames([WireFrame])
    case refuse(WireFrame)
    case close
    case reset
  }

  let step: Step

  /// A welcome that accepts metadata, fragments and streams, and the client's heartbeat.
  public static let normal = welcome()

  /// A welcome that accepts those of these features which the client has, and the client's
  /// heartbeat. The feature `streams` needs `metadata`, too.
  ///
  /// `streamCredit` is the first credit for the client's items in each stream, in bytes; 0 means
  /// the wire's default, 65,536. With 1, all items wait for ``ServerAction/credit(_:)``.
  ///
  /// If `credentialExpires` is not nil, the welcome says that the server accepts the client's
  /// credential for that time. With the feature ``WireFeatures/renewal``, the server then also
  /// accepts renewals.
  public static func welcome(
    features: WireFeatures = [.metadata, .fragments, .streams, .renewal],
    streamCredit: UInt32 = 65_536, credentialExpires: Duration? = nil
  ) -> ServerHandshake {
    ServerHandshake(
      step: .welcome(features, streamCredit: streamCredit, credentialExpires: credentialExpires))
  }

  /// Any frames, such as a custom `WireFrame.welcome`.
  public static func frames(_ frames: [WireFrame]) -> ServerHandshake {
    ServerHandshake(step: .frames(frames))
  }

  /// No response; the connection stays open.
  public static let silent = frames([])

  /// A goaway; then the connection is closed.
  public static func refuse(
    _ code: ResponseCode,
    _ reason: String = ""
  ) -> ServerHandshake {
    ServerHandshake(step: .refuse(.goAway(code: code, reason: reason)))
  }

  /// The connection is closed.
  public static let close = ServerHandshake(step: .close)

  /// The connection is reset.
  public static let reset = ServerHandshake(step: .reset)
}
