// SPDX-License-Identifier: Apache-2.0

import LongLink

/// The times that all processes of a soak share; bounds are computed from them.
enum SoakTiming {
  static let heartbeat = Heartbeat(interval: .seconds(1), timeout: .seconds(1))
  static let deadline = Duration.seconds(10)
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
