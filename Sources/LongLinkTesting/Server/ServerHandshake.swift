// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// How a ``SimulatedServer`` answers a hello.
public struct ServerHandshake: Sendable {
  enum Step: Sendable {
    case welcome(Features)
    case frames([WireFrame])
    case refuse(WireFrame)
    case close
    case reset
  }

  let step: Step

  /// With a welcome that agrees to metadata and fragments, and to the client's heartbeat.
  public static let normal = welcome(features: [.metadata, .fragments])

  /// With a welcome that agrees to these features, where the client has them, and to its heartbeat.
  public static func welcome(features: Features) -> ServerHandshake {
    ServerHandshake(step: .welcome(features))
  }

  /// With any frames, such as a `WireFrame.welcome` of one's own.
  public static func frames(_ frames: [WireFrame]) -> ServerHandshake {
    ServerHandshake(step: .frames(frames))
  }

  /// Not at all; the connection stays open.
  public static let silent = frames([])

  /// With a goaway, and the end of the connection.
  public static func refuse(
    _ code: ResponseCode,
    _ reason: String = ""
  ) -> ServerHandshake {
    ServerHandshake(step: .refuse(.goAway(code: code, reason: reason)))
  }

  /// By closing the connection.
  public static let close = ServerHandshake(step: .close)

  /// By resetting the connection.
  public static let reset = ServerHandshake(step: .reset)
}
