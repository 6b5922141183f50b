// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// The response of a ``SimulatedServer`` to a hello.
public struct ServerHandshake: Sendable {
  enum Step: Sendable {
    case welcome(
      WireFeatures, streamCredit: UInt32, credentialExpires: Duration?, once: OnceStatement?)
    case frames([WireFrame])
    case refuse(WireFrame)
    case close
    case reset
  }

  /// What a welcome says about the keys of the client's requests.
  struct OnceStatement: Sendable {
    let space: [UInt8]
    let retention: Duration
    let time: UInt64
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
  ///
  /// If `keySpace` is not nil, it is 16 bytes, where the client's keys are kept, and requests can
  /// run once: the server says so to a client with the feature ``WireFeatures/once``. It keeps
  /// nothing: the script has the answers. `keyRetention` is for how long it claims to keep them,
  /// and `keyTime` the clock of its store, in milliseconds.
  public static func welcome(
    features: WireFeatures = [.metadata, .fragments, .streams, .renewal, .once],
    streamCredit: UInt32 = 65_536, credentialExpires: Duration? = nil,
    keySpace: [UInt8]? = nil, keyRetention: Duration = .seconds(300), keyTime: UInt64 = 1
  ) -> ServerHandshake {
    let once = keySpace.map { OnceStatement(space: $0, retention: keyRetention, time: keyTime) }
    return ServerHandshake(
      step: .welcome(
        features, streamCredit: streamCredit, credentialExpires: credentialExpires, once: once))
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
