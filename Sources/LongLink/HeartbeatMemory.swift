// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
public import LongLinkCore

/// Remembers what an adaptive heartbeat has learned about each network.
///
/// The names are those that the client is told; without one nothing is remembered. Both functions
/// are called on the client's loop and must not block: keep a dictionary, and write it to storage
/// elsewhere. What is forgotten is learned again.
public protocol HeartbeatMemory: Sendable {
  /// What was last stored for a network; nil where nothing was.
  func load(network: String) -> LearnedHeartbeat?
  /// Keeps what was learned about a network, in place of what was known before.
  func store(_ learned: LearnedHeartbeat, network: String)
}

extension AdaptiveHeartbeat {
  func validate(within heartbeat: Heartbeat) throws(LongLinkError) {
    let field = "adaptiveHeartbeat"
    if shortest < .milliseconds(200) || shortest > heartbeat.interval {
      throw .configuration(
        "\(field).shortest", "\(shortest) is not within 200 ms and \(heartbeat.interval)")
    }
    if step <= .zero { throw .configuration("\(field).step", "\(step) is not above zero") }
    if successes < 1 { throw .configuration("\(field).successes", "\(successes) is below 1") }
    if backOff <= .zero {
      throw .configuration("\(field).backOff", "\(backOff) is not above zero")
    }
    if failures < 1 { throw .configuration("\(field).failures", "\(failures) is below 1") }
  }
}
