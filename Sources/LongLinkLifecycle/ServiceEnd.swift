// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkDriver
internal import LongLinkServer
internal import ServiceLifecycle

/// Hears why a service has to end.
struct ServiceEnd: Sendable {
  /// Opens with the first reason to end.
  let ending = Gate<ServiceEnding>()
  /// Opens when the service is cancelled, perhaps while it drains.
  let cancelled = Gate<Void>()

  /// Runs a service, and opens the gates meanwhile.
  func watched(_ body: () async throws -> Void) async rethrows {
    try await withTaskCancellationHandler {
      try await withGracefulShutdownHandler {
        try await body()
      } onGracefulShutdown: {
        ending.open(.drain)
      }
    } onCancel: {
      cancelled.open(())
      ending.open(.cancel)
    }
  }
}
#endif
