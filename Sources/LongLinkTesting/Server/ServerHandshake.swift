// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// The response of a ``SimulatedServer`` to a hello.
public struct ServerHandshake: Sendable {
  enum Step: Sendable {
    case welcome(
      WireFeatures, streamCredit: UInt32, credentialExpires: Duration?, once: KeyTerms?)
    case frames([WireFrame])
    case refuse(WireFrame)
    case close
    case reset
  }

  /// What a welcome says about the keys of the client's requests.
  struct KeyTerms: Sendable {
    let space: [UInt8]
    let retention: Duration
    let time: UInt64
  }

  let step: Step

  /// A welcome that accepts all features of the client, and its heartbeat. It names no key space
  /// and no end of the credential, so that requests do not run once and nothing is renewed.
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
  ///
  /// If `keySpace` is not nil, it is the 16 bytes that name where the client's keys are kept, and
  /// requests can run once: the welcome says so to a client with the feature
  /// ``WireFeatures/once``. The simulated server keeps nothing: the script has the answers.
  /// `keyRetention` is the time for which it claims to keep them, and `keyTime` the clock of its
  /// store, in milliseconds.
  public static func welcome(
    features: WireFeatures = [.metadata, .fragments, .streams, .renewal, .once],
    streamCredit: UInt32 = 65_536, credentialExpires: Duration? = nil,
    keySpace: [UInt8]? = nil, keyRetention: Duration = .seconds(300), keyTime: UInt64 = 1
  ) -> ServerHandshake {
    let once = keySpace.map { KeyTerms(space: $0, retention: keyRetention, time: keyTime) }
    return ServerHandshake(
      step: .welcome(
        features, streamCredit: streamCredit, credentialExpires: credentialExpires, once: once))
  }

  /// Any frames in place of the welcome, in this order, such as a custom `WireFrame.welcome`.
  public static func frames(_ frames: [WireFrame]) -> ServerHandshake {
    ServerHandshake(step: .frames(frames))
  }

  /// No response; the connection stays open.
  public static let silent = frames([])

  /// A goaway with a code, and a reason for people; then the connection is closed.
  public static func refuse(
    _ code: ResponseCode,
    _ reason: String = ""
  ) -> ServerHandshake {
    ServerHandshake(step: .refuse(.goAway(code: code, reason: reason)))
  }

  /// No response: the connection is closed.
  public static let close = ServerHandshake(step: .close)

  /// No response: the connection is reset. A Unix-domain socket is closed instead.
  public static let reset = ServerHandshake(step: .reset)
}
