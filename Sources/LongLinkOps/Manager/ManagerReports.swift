// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkServer
internal import Logging
internal import NIOCore

/// Tells the service manager when the server is ready, that its loops live, and when it begins to
/// end. It is used on the port's thread.
final class ManagerReports {
  private unowned let core: PortCore
  private let manager: ServiceManager
  private var hasToldReady = false
  private var hasToldStopping = false
  /// When the watchdog has to hear something again.
  private var due = NIODeadline.now()
  private var next: Scheduled<Void>?
  /// Whether the last message could not be sent.
  private var hasFailed = false

  /// How often it is looked whether the server is ready, and then whether it ends.
  private static let lookTimes = (
    starting: TimeAmount.milliseconds(50), ready: TimeAmount.seconds(1)
  )

  /// Begins to report; nil if there is no service manager, or the configuration does not want it.
  init?(_ core: PortCore) {
    guard core.configuration.notifiesServiceManager else { return nil }
    do {
      guard let manager = try ServiceManager(core.configuration.environment) else { return nil }
      self.manager = manager
    } catch {
      Self.log(error, core)
      return nil
    }
    self.core = core
    look()
  }

  /// Tells of the end, if the server ends, and nothing more.
  func stop() {
    next?.cancel()
    if core.server.standing == .draining { tellStopping() }
  }

  private func look() {
    switch core.server.standing {
    case .starting: break
    case .ready: if !hasToldReady { hasToldReady = tell("READY=1") }
    case .draining: tellStopping()
    }
    guard let watchdog = manager.watchdog, due <= .now() else { return lookAgain() }
    core.pingLoops { [weak self] answers in
      guard let self else { return }
      if answers.allSatisfy(\.isLive), tell("WATCHDOG=1") { due = .now() + watchdog }
      lookAgain()
    }
  }

  private func lookAgain() {
    var time = hasToldReady ? Self.lookTimes.ready : Self.lookTimes.starting
    if let watchdog = manager.watchdog {
      // If a loop did not answer, each second, so that a short hang does not end the process.
      let rest = due - .now()
      time = min(time, rest > .zero ? rest : watchdog)
    }
    next = core.thread.loop.assumeIsolated().scheduleTask(in: time) { [weak self] in self?.look() }
  }

  private func tellStopping() {
    if !hasToldStopping { hasToldStopping = tell("STOPPING=1") }
  }

  /// Returns whether a message was sent.
  private func tell(_ message: String) -> Bool {
    do {
      try manager.tell(message)
      hasFailed = false
    } catch {
      if !hasFailed { Self.log(error, core) }
      hasFailed = true
    }
    return !hasFailed
  }

  private static func log(_ error: IOError, _ core: PortCore) {
    core.configuration.logger.warning(
      "Could not tell the service manager", metadata: ["error": "\(error)"])
  }
}
#endif
