// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkDriver
public import LongLinkTransport

/// The state of a client's connection.
public enum ConnectionState: Hashable, Sendable {
  /// The client has not needed a connection yet.
  case idle
  /// The client is looking up this server, connecting to it, performing the handshake, or preparing
  /// the connection (``ClientConfiguration/prepare``).
  case connecting(Endpoint)
  /// There is a connection to this address (nil if it is unknown), and requests can be sent.
  case connected(SocketAddress?)
  /// Requests can be sent on the connection to the first address (nil if it is unknown), while a
  /// connection to the server `to` is being made to replace it.
  case migrating(SocketAddress?, to: Endpoint)
  /// There is no connection, and requests go over short links of the way with this name. If the
  /// long link is among the ways, the client goes on trying to connect. If the servers did not
  /// accept it over the long link, it tries again only after `connect()` or, if their code was 401,
  /// once its `credential` function returns another credential.
  case short(String)
  /// The connect failed or the connection ended. The next attempt begins after this time, counted
  /// from when the state was entered.
  case waiting(Duration)
  /// The servers did not accept this client, with this code (401 or 403): they refused the same
  /// credential twice in a row, or any two credentials with 403. Requests fail; `connect()` asks
  /// for a credential and tries again. Over short links, a request tries again after 401 if the
  /// `credential` function then returns another one.
  case notAccepted(ResponseCode)
  /// The client was suspended with `suspend`, and has not been resumed.
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
