// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

extension ClientConfiguration {
  /// Makes the client search for the longest ping interval that its network allows. Without this
  /// call, it always uses `heartbeat.interval`.
  ///
  /// The search begins at `shortest`, 200 ms or more, and ends at `heartbeat.interval`, which is
  /// never exceeded: a lost server is always detected within that interval plus the timeout. Both
  /// are 30 s by default, so set a longer `heartbeat.interval`, or a shorter `shortest`. If a ping
  /// is answered after a full interval of silence on both sides, the network still knew the
  /// connection. After `successes` of these in a row, 1 or more, the interval grows by `step`,
  /// which is above zero. If such a ping is lost at a lengthened interval, the interval shrinks by
  /// `backOff`, also above zero; after `failures` losses, 1 or more, the search is over and the
  /// interval can only shrink. `validate()` checks these values.
  ///
  /// The server must allow it: the agreed interval is the shorter of both sides' intervals, and the
  /// search does not exceed it.
  ///
  /// `store` keeps what was learned about a network, as a short text that replaces an earlier one;
  /// `load` returns that text, or nil if there is none. Without them, each client learns anew. The
  /// names of networks are those that you pass to `LongLinkClient.pathChanged(network:)`; nothing
  /// is stored for an unnamed network. Both are called on the client's loop and must not block:
  /// keep a dictionary, and write it to disk on another thread.
  public mutating func adaptHeartbeat(
    shortest: Duration = .seconds(30), step: Duration = .seconds(30), successes: Int = 3,
    backOff: Duration = .seconds(40), failures: Int = 2,
    store: (@Sendable (_ learned: String, _ network: String) -> Void)? = nil,
    load: (@Sendable (_ network: String) -> String?)? = nil
  ) {
    adaptiveHeartbeat = AdaptiveHeartbeat(
      shortest: shortest, step: step, successes: successes, backOff: backOff, failures: failures,
      store: store, load: load)
  }
}
