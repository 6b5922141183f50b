// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
@_spi(Loop) import LongLinkTransport
import Logging

extension LongLinkServer {
  /// Tells the security and the services that the server starts.
  func startServices(_ services: [any ServerService], on loop: EventLoop) {
    startSecurity(on: loop)
    for service in services { service.serverStarted(on: loop) }
  }

  /// Warns if access rules need a principal but no client gets one, so that they allow no client.
  func warnOfAccess(_ hooks: ServerHooks) {
    guard configuration.identity.authenticate == nil, let types = hooks.needsPrincipal(router.names)
    else {
      return
    }
    configuration.logger.warning(
      """
      Access rules need a principal, and no client gets one: they allow no client. \
      Set `identity.authenticate`.
      """, metadata: ["types": "\(types)"])
  }

  /// Logs that the server listens on an address; warns if credentials come without encryption
  /// there.
  func logListening(on address: SocketAddress) {
    configuration.logger.info(
      "Listening",
      metadata: [
        "address": "\(address)", "tls": "\(configuration.security?.provider.versions ?? "off")",
      ])
    let isLocal = address.family == .unix || address.group?.isLoopback ?? false
    guard configuration.identity.authenticate != nil, configuration.security == nil, !isLocal else {
      return
    }
    configuration.logger.warning(
      """
      Clients' credentials come without encryption, on an address that others can reach. Set \
      `security`, unless a proxy ends TLS and is the only one that can connect.
      """, metadata: ["address": "\(address)"])
  }

  /// Tells the services and the security that the server has stopped.
  func stopServices(_ services: [any ServerService], on loop: EventLoop) async {
    for service in services { await service.serverStopped(on: loop) }
    guard let security = configuration.security else { return }
    await loop.run { security.provider.serverStopped(ObjectIdentifier(self), on: loop) }
  }

  /// Tells the security that the server starts, how to log, and how to make connections move.
  private func startSecurity(on loop: EventLoop) {
    guard let security = configuration.security else { return }
    let log: SecurityLog = { [logger = configuration.logger] level, message, details in
      let level: Logger.Level =
        switch level {
        case .info: .notice
        case .warning: .warning
        case .error: .error
        }
      logger.log(level: level, "\(message)", metadata: details.mapValues { .string($0) })
    }
    security.provider.serverStarted(ObjectIdentifier(self), on: loop, log) { [weak self] in
      guard let self else { return }
      Task(executorPreference: loop) { await self.moveConnections() }
    }
  }

  /// Asks the clients of all connections that are open now to move to new ones.
  private func moveConnections() async {
    let notice = DrainNotice(
      reason: "the server's certificates have changed", as: .drained, configuration, spread: nil,
      retryAfter: nil, alternatives: nil, goesOn: true)
    for (loop, lane) in lanesNow {
      await loop.run { lane.value.drainAll(within: ServerLane.moveBound, notice) }
    }
  }
}
