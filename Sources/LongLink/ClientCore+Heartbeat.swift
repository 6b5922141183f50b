// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

extension ClientCore {
  /// Begins the search of an adaptive heartbeat with what is remembered of the present network.
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

  /// Takes note of the network that the client is in now; nil for one without a name.
  ///
  /// The search begins again, or goes on where it was left in that network. The same name again
  /// changes nothing.
  func useNetwork(_ name: String?) {
    guard name == nil || name != network else { return }
    network = name
    heartbeatSearch = ClientCore.heartbeatSearch(configuration, network: name)
    followSearch()
  }

  /// What the next connection is told. Throws where its prefix does not fit.
  func connectionSettings() throws(FrameLayoutError) -> ConnectionSettings {
    var settings = try configuration.connectionSettings()
    settings.pace = heartbeatSearch?.interval
    return settings
  }

  /// A ping was answered after a silence.
  func heartbeatAnswered(on link: Link, after silence: Int64) {
    // A connection over an earlier path tells nothing of the present network.
    guard connection(link.id)?.path == path else { return }
    guard let isWorthKeeping = heartbeatSearch?.answered(after: silence) else { return }
    if isWorthKeeping { rememberHeartbeat() }
    followSearch()
  }

  /// A connection has ended, perhaps since its path had forgotten it.
  func heartbeatLost(on connection: ClientConnection, _ reason: CloseReason) {
    guard connection.path == path else { return }
    switch reason {
    // What a router has forgotten it drops, or answers with a reset.
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
