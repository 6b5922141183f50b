// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
@_spi(Loop) import LongLinkTransport
import Logging

extension LongLinkServer {
  /// Runs the server until the process gets one of the signals, and shuts it down then, as
  /// `shutDown(within:)` does: running requests finish within `bound`.
  ///
  ///     try await server.run(until: .sigterm, .sigint)
  ///
  /// It starts the server, unless that runs already. It also ends when its task is cancelled, after
  /// the same graceful shutdown, and when something else has shut the server down. Without a signal
  /// it ends in these two ways alone.
  ///
  /// `whenStarted` is called once the server listens and the signals are caught; a signal that
  /// comes meanwhile takes effect when it has returned. If it throws, the server is shut down, and
  /// the error is thrown on. Otherwise this throws the `LongLinkError` of `start`, and
  /// `connectFailed` with the system's error if the signals cannot be caught.
  ///
  /// The signals have their former effect again as soon as the first one has come, or this has
  /// returned: a second one usually ends the process at once. A signal belongs to the process and
  /// not to a server: all servers that run until it are shut down at the same time. A handler that
  /// something else in the process sets for such a signal replaces this one. A signal that the
  /// process ignores stays ignored, such as SIGHUP under `nohup`. In a simulation, no signal comes.
  nonisolated(nonsending) public func run(
    until signals: TerminationSignal..., within bound: Duration = .seconds(10),
    whenStarted: () async throws -> Void = {}
  ) async throws {
    let ending = Gate<TerminationSignal?>()
    let wait = try catching(signals) { ending.open($0) }
    defer { if let wait { ProcessSignals.shared.cancel(wait) } }
    try await withTaskCancellationHandler {
      if !isStarted { try await start() }
      do {
        try await whenStarted()
      } catch {
        // From here on, a signal is the second one.
        if let wait { ProcessSignals.shared.cancel(wait) }
        await shutDown(within: bound)
        throw error
      }
      async let end: Void = openAtEnd(ending)
      if let signal = await ending.value {
        configuration.logger.info("Ending at a signal", metadata: ["signal": "\(signal)"])
      } else if let wait {
        // From here on, a signal is the second one.
        ProcessSignals.shared.cancel(wait)
      }
      await shutDown(within: bound)
      await end
    } onCancel: {
      ending.open(nil)
    }
  }

  /// Calls a function at the first of the signals; returns the number of the wait. Nil without a
  /// signal, and in a simulation.
  private func catching(
    _ signals: [TerminationSignal], _ call: @escaping @Sendable (TerminationSignal) -> Void
  ) throws(LongLinkError) -> UInt64? {
    guard !signals.isEmpty, !isSimulated else { return nil }
    let byNumber = Dictionary(signals.map { ($0.number, $0) }) { first, _ in first }
    do throws(SocketError) {
      return try ProcessSignals.shared.wait(for: Set(byNumber.keys)) { number in
        if let signal = byNumber[number] { call(signal) }
      }
    } catch {
      throw LongLinkError(
        .connectFailed, doing: "catch signals", detail: error.reason, systemError: error.errno)
    }
  }

  private func openAtEnd(_ gate: Gate<TerminationSignal?>) async {
    await waitUntilShutDown()
    gate.open(nil)
  }
}
