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

  /// A welcome that accepts these features, if the client has them, and the client's heartbeat.
  /// Streams need metadata, too.
  ///
  /// `streamCredit` is the first credit for the client's items in each stream, in bytes; 0 means
  /// the wire's default, 65,536. With 1, all items wait for ``ServerAction/credit(_:)``.
  ///
  /// If `credentialExpires` is not nil, the server says that it accepts each credential of the
  /// client for that time; with the feature ``WireFeatures/renewal``, it accepts the next ones on
  /// the connection.
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

  /// A goaway, after which the connection is closed.
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
