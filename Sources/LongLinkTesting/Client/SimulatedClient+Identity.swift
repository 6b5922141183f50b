// SPDX-License-Identifier: Apache-2.0

public import LongLinkTransport
internal import Synchronization

// A client that renews its credential, and moves to another connection.
extension SimulatedClient {
  /// Renews the credential, waits for the server's answer, and returns the answer's fields.
  ///
  /// The hello has to offer the feature ``WireFeatures/renewal``, and the welcome has to contain
  /// it. Nothing checks that, so you can also renew before the welcome, too often, or with the
  /// credential of another principal. Let only one call wait at a time: answers have no serial. To
  /// send a renewal without waiting, use `send` with ``WireFrame/renewal(_:)``.
  ///
  /// Throws an error that says how the connection has ended, if it ends first, and
  /// `CancellationError` if the task is cancelled.
  @discardableResult
  public func renew(
    _ credential: [UInt8], fileID: String = #fileID, line: Int = #line
  ) async throws -> RenewedFields {
    let earlier = record.renewals.count
    send(.renewal(credential))
    let call = call("the answer to a renewal", fileID, line)
    return try await journal.message(on: 1, for: call) { record in
      record.frames.lazy.filter(\.isIntact).compactMap(\.frame.renewedFields).dropFirst(earlier)
        .first
    }
  }

  /// Opens another connection of the same client, says hello there, closes this connection, and
  /// returns the new one once it has its welcome.
  ///
  /// By default it connects to the same server, and repeats the hello that this client sent last:
  /// the same `client_id`, name and credential. With `leaves` false, this connection stays open, so
  /// that the client has two. A hello with the `client_id` of another client claims that client's
  /// identity. Calls that still wait for responses on this connection throw when it closes.
  ///
  /// Throws like `connect` and `sayHello`; then this connection stays open.
  public func move(
    to address: SocketAddress? = nil, saying hello: WireFrame? = nil, leaves: Bool = true,
    fileID: String = #fileID, line: Int = #line
  ) async throws -> SimulatedClient {
    let next = try await SimulatedClient.connect(
      to: address ?? target.address, on: loop, security: target.security,
      securityFaults: target.faults, fileID: fileID, line: line)
    try await next.sayHello(hello ?? self.hello.withLock { $0 }, fileID: fileID, line: line)
    if leaves { close() }
    return next
  }
}
