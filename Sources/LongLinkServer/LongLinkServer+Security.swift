// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
@_spi(Loop) import LongLinkTransport
import Logging

extension LongLinkServer {
  /// Tells what works beside the server that it starts.
  func startServices(_ services: [any ServerService], on loop: EventLoop) {
    startSecurity(on: loop)
    for service in services { service.serverStarted(on: loop) }
  }

  /// Tells it that the server has stopped.
  func stopServices(_ services: [any ServerService], on loop: EventLoop) async {
    for service in services { await service.serverStopped(on: loop) }
    guard let security = configuration.security else { return }
    await loop.run { security.provider.serverStopped(ObjectIdentifier(self), on: loop) }
  }

  /// Tells what secures the connections that the server runs, and where to report and move.
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
      reason: "the server's certificates have changed", configuration, spread: nil,
      retryAfter: nil, alternatives: nil)
    for (loop, lane) in lanesNow {
      await loop.run { lane.value.drainAll(within: ServerLane.moveBound, notice) }
    }
  }
}
