// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

@testable import LongLinkTLS
@_spi(Loop) @testable import LongLinkTransport

/// A client's stream whose peer is a raw server, or a server's stream, on a loop of a simulation.
final class ClientStage: TransportHandler {
  /// What answers the client.
  private enum Peer {
    case raw(RawTLS)
    case server(any Transport, MemoryTransport)
  }

  let stream: any Transport
  let below = MemoryTransport()
  private let peer: Peer

  init(on loop: EventLoop, _ client: TLSClient, server: RawTLS, host: String = "server.test") {
    peer = .raw(server)
    stream = client.secure(below, host: host, on: loop)
    begin()
  }

  init(on loop: EventLoop, _ client: TLSClient, _ server: TLSServer, host: String = "server.test") {
    let other = MemoryTransport()
    let serving = server.secure(other, on: loop)
    peer = .server(serving, other)
    stream = client.secure(below, host: host, on: loop)
    serving.attach(self, token: 1)
    serving.setInterest(.read)
    begin()
  }

  private func begin() {
    stream.attach(self, token: 0)
    stream.setInterest([.read, .write])
  }

  func transportReady(_ readiness: Readiness, token: UInt64) {}

  /// Moves bytes both ways, once.
  func exchange() {
    below.deliver()
    (stream as? TLSTransport)?.turnEnds()
    let sent = below.takeOutput()
    switch peer {
    case .raw(let server):
      server.receive(sent)
      _ = server.handshake()
      below.inbox += server.takeOutput()
    case .server(let server, let other):
      other.inbox += sent
      other.deliver()
      (server as? TLSTransport)?.turnEnds()
      below.inbox += other.takeOutput()
    }
  }

  /// Moves bytes until the handshake is over or has failed; returns whether it is over.
  @discardableResult
  func shakeHands() -> Bool {
    for _ in 0..<6 where stream.layer?.security == nil && stream.layer?.securityFailure == nil {
      exchange()
    }
    return stream.layer?.security != nil
  }

  /// Reads what has come.
  func read() throws -> [UInt8] { try Self.read(stream) }

  private static func read(_ stream: any Transport) throws -> [UInt8] {
    var queue = ByteQueue()
    while case .bytes = try queue.append(
      capacity: 4_096, { (span) throws(SocketError) in try stream.read(into: &span) })
    {}
    return queue.takeAll()
  }

  static func write(_ bytes: [UInt8], to stream: any Transport) throws {
    _ = try unsafe bytes.withUnsafeBytes { try unsafe stream.write(RawSpan(_unsafeBytes: $0)) }
  }

  /// Lets the server write a byte, with which its tickets come.
  func speak() throws {
    exchange()
    guard case .server(let server, _) = peer else { return }
    try Self.write([1], to: server)
    exchange()
    _ = try read()
  }

  /// Speaks, and closes both.
  func finish() throws {
    try speak()
    close()
  }

  func close() {
    stream.close()
    closeServer()
  }

  /// Closes LongLink's server.
  func closeServer() {
    if case .server(let server, _) = peer { server.close() }
  }
}
