// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkDriver
public import LongLinkTransport

/// The state of a client's connection.
public enum ConnectionState: Hashable, Sendable {
  /// No connection has been needed yet.
  case idle
  /// The client is looking up a server, connecting to it, performing the handshake, or preparing
  /// the connection (``ClientConfiguration/prepare``).
  case connecting(Endpoint)
  /// Requests can be sent.
  case connected(SocketAddress?)
  /// Requests can be sent on one connection, while another one is being made to replace it.
  case migrating(SocketAddress?, to: Endpoint)
  /// There is no connection, and requests go over short links of the way with this name. If the
  /// long link is among the ways, the client goes on trying to connect, unless the servers did not
  /// accept it there: then until `connect()`, or until its credential is another one.
  case short(String)
  /// The connect failed or the connection ended. The next attempt begins after this time, counted
  /// from when the state was entered.
  case waiting(Duration)
  /// The servers did not accept this client, with 401 or 403: the same credential was refused twice
  /// in a row. Requests fail; `connect()` asks for a credential and tries again. Over short links,
  /// so does a request for which the credential is another one.
  case notAccepted(ResponseCode)
  /// The client was suspended with `suspend`, and not resumed since.
  case suspended
  /// The client was closed.
  case closed

  /// Whether there is a connection, over which requests and pushes can be sent.
  public var isConnected: Bool {
    switch self {
    case .connected, .migrating: true
    case .idle, .connecting, .short, .waiting, .notAccepted, .suspended, .closed: false
    }
  }
}

extension ConnectionState: CustomStringConvertible {
  /// The state as text, such as `connected(127.0.0.1:9000)`.
  public var description: String {
    switch self {
    case .idle: "idle"
    case .connecting(let server): "connecting(\(server))"
    case .connected(let address): "connected(\(Self.text(of: address)))"
    case .migrating(let address, let server): "migrating(\(Self.text(of: address)), to: \(server))"
    case .short(let way): "short(\(way))"
    case .waiting(let time): "waiting(\(time))"
    case .notAccepted(let code): "notAccepted(\(code))"
    case .suspended: "suspended"
    case .closed: "closed"
    }
  }

  private static func text(of address: SocketAddress?) -> String {
    address.map { "\($0)" } ?? "unknown address"
  }
}
