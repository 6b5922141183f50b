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
  /// It starts the server, unless the server runs already. It also ends when its task is cancelled,
  /// after the same graceful shutdown, and when something else has shut the server down. If no
  /// signal is named, it ends only in these two ways.
  ///
  /// `whenStarted` is called once the server listens and the signals are caught; a signal that
  /// comes meanwhile takes effect when it has returned. If it throws, the server is shut down, and
  /// the error is thrown on. If the server cannot start, it is shut down too, and this throws the
  /// `LongLinkError` of `start`. It throws `connectFailed` with the system's error if the signals
  /// cannot be caught.
  ///
  /// The signals have their former effect again once the first one has arrived, or this has
  /// returned: a second one usually ends the process at once. A signal belongs to the process: it
  /// shuts down all servers that run until this signal. If something else in the process sets a
  /// handler for such a signal, that handler replaces this one. A signal that the process ignores
  /// stays ignored, such as SIGHUP under `nohup`. In a simulation, no signal arrives.
  nonisolated(nonsending) public func run(
    until signals: TerminationSignal..., within bound: Duration = .seconds(10),
    whenStarted: () async throws -> Void = {}
  ) async throws {
    let ending = Gate<TerminationSignal?>()
    let wait = try catching(signals) { ending.open($0) }
    defer { if let wait { ProcessSignals.shared.cancel(wait) } }
    try await withTaskCancellationHandler {
      try await startToRun()
      do {
        try await whenStarted()
      } catch {
        // From here on, another signal has its former effect.
        if let wait { ProcessSignals.shared.cancel(wait) }
        await shutDown(within: bound)
        throw error
      }
      async let end: Void = openAtEnd(ending)
      if let signal = await ending.value {
        configuration.logger.info("Ending at a signal", metadata: ["signal": "\(signal)"])
      } else if let wait {
        // From here on, another signal has its former effect.
        ProcessSignals.shared.cancel(wait)
      }
      await shutDown(within: bound)
      await end
    } onCancel: {
      ending.open(nil)
    }
  }

  /// Starts the server, unless it runs already. If it cannot start, it ends: what belongs to it
  /// would otherwise go on without it.
  nonisolated(nonsending) func startToRun() async throws(LongLinkError) {
    guard !isStarted else { return }
    do throws(LongLinkError) {
      try await start()
    } catch {
      // Otherwise something else has just started it, or shut it down.
      if error.code != .closed { await shutDown(within: .zero) }
      throw error
    }
  }

  /// Calls a function at the first of the signals. Returns the number of the wait; nil if no signal
  /// is named, and in a simulation.
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
