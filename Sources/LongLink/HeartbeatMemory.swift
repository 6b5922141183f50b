// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
public import LongLinkCore

/// Storage for what an adaptive heartbeat has learned about each network.
///
/// The names come from `LongLinkClient.pathChanged(network:)`; nothing is stored for an unnamed
/// network. Both functions are called on the client's loop and must not block: keep a dictionary,
/// and write it to disk on another thread. Lost entries are learned again.
public protocol HeartbeatMemory: Sendable {
  /// Returns what was last stored for a network, or nil.
  func load(network: String) -> LearnedHeartbeat?
  /// Stores what was learned about a network, replacing any earlier value.
  func store(_ learned: LearnedHeartbeat, network: String)
}

extension AdaptiveHeartbeat {
  func validate(within heartbeat: Heartbeat) throws(LongLinkError) {
    let field = "adaptiveHeartbeat"
    if shortest < .milliseconds(200) || shortest > heartbeat.interval {
      throw .configuration(
        "\(field).shortest", "\(shortest) is not between 200 ms and \(heartbeat.interval)")
    }
    if step <= .zero { throw .configuration("\(field).step", "\(step) is not above zero") }
    if successes < 1 { throw .configuration("\(field).successes", "\(successes) is below 1") }
    if backOff <= .zero {
      throw .configuration("\(field).backOff", "\(backOff) is not above zero")
    }
    if failures < 1 { throw .configuration("\(field).failures", "\(failures) is below 1") }
  }
}
