// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

/// An adaptive heartbeat: what a client has learned about its current network path, which is stored
/// by the name of the network.
///
/// Connections over an earlier path say nothing about the current one.
final class PathHeartbeat {
  private let policy: AdaptiveHeartbeat
  private let longest: Int64
  private var search: HeartbeatSearch
  /// The name of the current network; nil if the client does not know it.
  private var network: String?
  /// The number of the current path: how often the network has changed.
  private(set) var path = 0

  /// Makes the heartbeat of a client; nil if its configuration has no adaptive heartbeat.
  init?(_ configuration: ClientConfiguration) {
    guard let policy = configuration.adaptiveHeartbeat else { return nil }
    self.policy = policy
    longest =
      configuration.dialect.heartbeat(configuration.heartbeat).interval.clampedNanoseconds
    search = HeartbeatSearch(policy, longest: longest)
  }

  /// The longest silence that connections should allow before a ping, in nanoseconds.
  var pace: Int64 { search.interval }

  /// Sets the name of the current network; nil for an unnamed one.
  ///
  /// The search begins anew, or continues from what is stored about that network. It goes on
  /// unchanged if the name is the same again.
  func pathChanged(network name: String?) {
    path += 1
    guard name == nil || name != network else { return }
    network = name
    search = HeartbeatSearch(
      policy, longest: longest,
      learned: name.flatMap { policy.load?($0) }.flatMap(LearnedHeartbeat.init(text:)))
  }

  /// Handles a ping that was answered after a silence, in nanoseconds.
  func answered(after silence: Int64, on path: Int) {
    if path == self.path, search.answered(after: silence) { remember() }
  }

  /// Handles the loss of a connection after a silence, in nanoseconds. Its path may have forgotten
  /// it.
  func lost(after silence: Int64, _ reason: CloseReason, on path: Int) {
    switch reason {
    // A router without the connection's state drops its packets, or answers with a reset.
    case .heartbeatLost, .transport: break
    case .violation, .closedByPeer, .noResponse, .handshakeTimeout, .stalledPeer, .unreadOutput,
      .memoryLimit, .cancelLimit, .handshakeEvicted, .securityFailed, .notAccepted, .goneAway,
      .closedHere, .left:
      return
    }
    if path == self.path, search.lost(after: silence) { remember() }
  }

  private func remember() {
    if let network { policy.store?(search.learned.text, network) }
  }
}
