// SPDX-License-Identifier: Apache-2.0

#if Operations
public import LongLink
internal import LongLinkDriver
internal import LongLinkServer
public import ServiceLifecycle

extension LongLinkClient {
  /// Returns this client as a service of a `ServiceGroup`, which connects the client and closes it
  /// when the group ends.
  ///
  /// ```swift
  /// let group = ServiceGroup(
  ///   services: [client.service(), worker], gracefulShutdownSignals: [.sigterm], logger: logger)
  /// ```
  ///
  /// The service runs on without a connection: the client tries again by itself. When the group
  /// shuts down gracefully, requests and pushes in flight, and those that wait, may finish within
  /// `bound`, which is not negative; new ones fail with `closed`. Default 10 s. When the group
  /// cancels its services, all that is left fails at once.
  ///
  /// A group ends its services one after the other, the last in its list first: list a client
  /// before the services that use it. The service also ends when something else has closed the
  /// client. It throws no errors.
  public func service(closingWithin bound: Duration = .seconds(10)) -> some Service {
    ClientService(client: self, bound: bound)
  }
}

private struct ClientService: Service, CustomStringConvertible {
  let client: LongLinkClient
  let bound: Duration

  var description: String { "LongLinkClient" }

  func run() async throws {
    let end = ServiceEnd()
    await end.watched {
      async let closed: Void = closes(end.ending)
      async let hurried: Void = hurries(at: end.cancelled)
      async let connected: Void = connects()
      if case .drain = await end.ending.value { await client.close(within: bound) }
      await client.close()
      end.cancelled.open(())
      _ = await (closed, hurried, connected)
    }
  }

  /// The client logs why it could not connect, and goes on.
  private func connects() async {
    do throws(LongLinkError) {
      try await client.connect()
    } catch {}
  }

  private func closes(_ ending: Gate<ServiceEnding>) async {
    for await _ in client.states() {}
    ending.open(.closed)
  }

  private func hurries(at cancelled: Gate<Void>) async {
    await cancelled.value
    await client.close()
  }
}
#endif
