// SPDX-License-Identifier: Apache-2.0

import LongLink

/// The times that all processes of a soak share; bounds are computed from them.
enum SoakTiming {
  static let heartbeat = Heartbeat(interval: .seconds(1), timeout: .seconds(1))
  static let deadline = Duration.seconds(10)
  /// How long a server accepts a credential. A client renews it after 75 to 90 % of this time,
  /// about every two seconds.
  static let validity = Duration.milliseconds(2_500)
  /// How long the requests of a client may run on whose credential has expired. It is longer than a
  /// drain, so that handlers can tell them apart.
  static let credentialGrace = Duration.seconds(5)
  /// The time between two broadcasts of a server, and between two items of a stream.
  static let broadcasts = Duration.milliseconds(250)
  /// How long something may still come over a connection after the client has the next one: until
  /// a connection that carries nothing any more is found to be dead.
  static let moving = heartbeat.interval + heartbeat.timeout
  static let connectTimeout = Duration.seconds(3)
  /// How long a draining server lets requests finish.
  static let drain = Duration.seconds(2)
  static let drainSpread = Duration.milliseconds(500)

  static var reconnect: ReconnectPolicy {
    var policy = ReconnectPolicy()
    policy.afterClose = .milliseconds(500)
    policy.afterLostHeartbeat = .seconds(1)
    policy.afterRefused = .milliseconds(500)
    policy.cap = .seconds(2)
    return policy
  }

  /// All clients are connected again within this time after the last fault: an attempt that began
  /// before, the longest delay and a connect, doubled for a busy machine.
  static let recovery = (connectTimeout + .seconds(3)) * 2
}
