// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
package import LongLinkDriver
@_spi(Loop) import LongLinkTransport
import Logging

/// Why a service ends.
package enum ServiceEnding: Sendable {
  /// Gracefully: what runs may finish.
  case drain
  /// At once.
  case cancel
  /// The client or server was closed by something else.
  case closed
}

extension LongLinkServer {
  /// Runs the server as a service, until `ending` opens. It starts the server, unless the server
  /// runs already.
  ///
  /// To drain, the server is not ready any more, goes on for `notice`, and shuts down within
  /// `bound`. When `cancelled` opens, both times are over. `readiness` is told when the server
  /// becomes ready, and when it is not ready any more. Throws the error of `start`; the server is
  /// shut down then.
  nonisolated(nonsending) package func serve(
    until ending: Gate<ServiceEnding>, cancelled: Gate<Void>, within bound: Duration,
    notice: Duration, readiness: @Sendable (Bool) -> Void
  ) async throws {
    try await startToRun()
    readiness(true)
    async let end: Void = closes(ending)
    async let hurried: Void = hurries(at: cancelled)
    let first = await ending.value
    withdraw()
    readiness(false)
    if case .drain = first {
      configuration.logger.info(
        "Not ready any more", metadata: ["noticeMs": .milliseconds(notice.clampedNanoseconds)])
      // A cancelled sleep throws, and ends the notice.
      if notice > .zero { try? await lanesNow.first?.0.clock.sleep(for: notice) }
    }
    await shutDown(within: first == .drain ? bound : .zero)
    await end
    cancelled.open(())
    await hurried
  }

  private func closes(_ ending: Gate<ServiceEnding>) async {
    await waitUntilShutDown()
    ending.open(.closed)
  }

  private func hurries(at cancelled: Gate<Void>) async {
    await cancelled.value
    for (loop, lane) in lanesNow { loop.execute { lane.value.hurryDrain() } }
    keeper?.hurryDrain()
  }
}
