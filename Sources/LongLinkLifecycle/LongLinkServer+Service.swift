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
  /// The service starts the server, unless it runs already. It ends the server in this order when
  /// the group shuts down gracefully:
  /// 1. `isReady` becomes false, and `readiness` is called with
  ///    false. For `notice`, which is not negative, the server goes on as before, so that a
  ///    balancer that asks for the readiness sends no more clients. Default: no time.
  /// 2. Each client gets a goaway, and moves to another server. What runs may finish within
  ///    `bound`, which is not negative. Default 10 s.
  /// 3. The connections are closed.
  ///
  /// When the group cancels its services, for example because its `maximumGracefulShutdownDuration`
  /// is over, both times are over, and the server ends at once. Let that duration be longer than
  /// `notice` and `bound` together, and by a second longer for the ends of the connections.
  ///
  /// `readiness` is also called with true, once the server accepts connections. The service ends
  /// with the error of `start` if the server cannot start, and without one if something else has
  /// shut the server down. A service runs once, as a server does.
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
