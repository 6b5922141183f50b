// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkDriver
public import LongLinkServer
public import ServiceLifecycle

extension LongLinkServer {
  /// Returns this server as a service, which runs it in a `ServiceGroup`.
  ///
  /// ```swift
  /// let group = ServiceGroup(
  ///   services: [server.service()], gracefulShutdownSignals: [.sigterm], logger: logger)
  /// try await group.run()
  /// ```
  ///
  /// The service starts the server, unless it runs already. When the group shuts down gracefully,
  /// the server ends in this order:
  /// 1. `isReady` becomes false, and `readiness` is called with false. For `notice`, which is not
  ///    negative, the server goes on as before, so that a balancer which asks for the readiness
  ///    sends no more clients. Default: zero.
  /// 2. Each client gets a goaway, and moves to another server. Requests that run may finish within
  ///    `bound`, which is not negative. Default 10 s.
  /// 3. The connections are closed.
  ///
  /// When the group cancels its services, for example because its `maximumGracefulShutdownDuration`
  /// has passed, the server ends at once. Set that duration to at least a second more than `notice`
  /// and `bound` together: connections need up to a second to end.
  ///
  /// `readiness` is also called with true, once the server accepts connections. It is called in the
  /// task of the service, and delays it while it runs. The service throws the error of `start` if
  /// the server cannot start, and ends without an error if something else has shut the server down.
  /// It can run once, like the server.
  public func service(
    drainingWithin bound: Duration = .seconds(10), notice: Duration = .zero,
    readiness: @escaping @Sendable (_ isReady: Bool) -> Void = { _ in }
  ) -> some Service {
    ServerService(server: self, bound: bound, notice: notice, readiness: readiness)
  }
}

private struct ServerService: Service, CustomStringConvertible {
  let server: LongLinkServer
  let bound: Duration
  let notice: Duration
  let readiness: @Sendable (Bool) -> Void

  var description: String { "LongLinkServer" }

  func run() async throws {
    let end = ServiceEnd()
    try await end.watched {
      try await server.serve(
        until: end.ending, cancelled: end.cancelled, within: bound, notice: notice,
        readiness: readiness)
    }
  }
}
#endif
