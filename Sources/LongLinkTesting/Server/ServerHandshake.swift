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

  /// A welcome that agrees to the client's features `metadata`, `fragments` and `streams`, and to
  /// its heartbeat. It does not agree to `once`, and to `renewal` only if ``SimulatedServer`` has a
  /// script for renewals (`onRenewal`).
  public static let normal = welcome()

  /// A welcome that agrees to the features that are both in `features` and in the client's hello,
  /// and to the client's heartbeat. The feature `streams` needs `metadata` and `fragments`, too;
  /// nothing checks this.
  ///
  /// `streamCredit` is the first credit for the client's items in each stream, in bytes; 0 means
  /// the wire's default, 65,536. With 1, all items wait for ``ServerAction/credit(_:)``.
  ///
  /// If `credentialExpires` is not nil, the welcome says that the server accepts the client's
  /// credential for that time, and the server accepts each renewal for the same time, unless
  /// `onRenewal` has set a script. The welcome contains ``WireFeatures/renewal`` only with such a
  /// time or such a script.
  ///
  /// `keySpace` is the 16 bytes that name where the client's keys are kept. The welcome contains
  /// ``WireFeatures/once``, so that requests can run once, only if it is not nil. The simulated
  /// server keeps no answers: the script has to give them. `keyRetention` is the time for which the
  /// server claims to keep answers, and `keyTime` the time of its store, in milliseconds.
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

  /// Any frames in place of the welcome, in this order, such as a ``WireFrame`` that `welcome` has
  /// made with unusual fields.
  public static func frames(_ frames: [WireFrame]) -> ServerHandshake {
    ServerHandshake(step: .frames(frames))
  }

  /// No response; the connection stays open.
  public static let silent = frames([])

  /// A goaway with a code and a reason for people to read; then the connection is closed.
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
