// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

extension ClientCore {
  /// Makes the search of an adaptive heartbeat, from what is stored about a network.
  static func heartbeatSearch(
    _ configuration: ClientConfiguration, network: String?
  ) -> HeartbeatSearch? {
    configuration.adaptiveHeartbeat.map { policy in
      HeartbeatSearch(
        policy,
        longest: configuration.dialect.heartbeat(configuration.heartbeat).interval
          .clampedNanoseconds,
        learned: network.flatMap { configuration.heartbeatMemory?.load(network: $0) })
    }
  }

  /// Sets the name of the current network; nil for an unnamed one.
  ///
  /// The search begins anew, or continues from what is stored about that network. The same name
  /// again changes nothing.
  func useNetwork(_ name: String?) {
    guard name == nil || name != network else { return }
    network = name
    heartbeatSearch = ClientCore.heartbeatSearch(configuration, network: name)
    followSearch()
  }

  /// Makes the settings of the next connection. Throws if its session prefix does not fit.
  func connectionSettings() throws(FrameLayoutError) -> ConnectionSettings {
    var settings = try configuration.connectionSettings()
    settings.pace = heartbeatSearch?.interval
    return settings
  }

  /// Handles a ping that was answered after a silence, in nanoseconds.
  func heartbeatAnswered(on link: Link, after silence: Int64) {
    // A connection over an earlier path reveals nothing about the current network.
    guard connection(link.id)?.path == path else { return }
    guard let isWorthKeeping = heartbeatSearch?.answered(after: silence) else { return }
    if isWorthKeeping { rememberHeartbeat() }
    followSearch()
  }

  /// Handles the end of a connection, perhaps because a router on its path dropped its state.
  func heartbeatLost(on connection: ClientConnection, _ reason: CloseReason) {
    guard connection.path == path else { return }
    switch reason {
    // A router without the connection's state drops its packets, or answers with a reset.
    case .heartbeatLost, .transport: break
    case .violation, .closedByPeer, .handshakeTimeout, .stalledPeer, .unreadOutput, .memoryLimit,
      .goneAway, .closedHere, .left:
      return
    }
    let silence = connection.link.silenceProbed
    guard heartbeatSearch?.lost(after: silence) == true else { return }
    rememberHeartbeat()
    followSearch()
  }

  private func rememberHeartbeat() {
    guard let network, let learned = heartbeatSearch?.learned else { return }
    configuration.heartbeatMemory?.store(learned, network: network)
  }

  private func followSearch() {
    guard let interval = heartbeatSearch?.interval else { return }
    for connection in connections { connection.link.setPace(interval) }
  }
}
