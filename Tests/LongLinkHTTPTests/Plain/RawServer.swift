// SPDX-License-Identifier: Apache-2.0

#if HTTP
import LongLinkDriver
import LongLinkHTTP
import LongLinkTransport
import NIOCore
import NIOPosix
import Synchronization
import Testing

/// A server that sends exactly the bytes that a test wants, also those that no server should.
final class RawServer: Sendable {
  let port: Int
  private let requests: Mutex<[RawRequest]>
  private let connections: Mutex<(total: Int, open: Int)>

  /// All requests so far, in their order.
  var received: [RawRequest] { requests.withLock(of: self) { $0 } }
  /// How many connections there were.
  var connectionCount: Int { connections.withLock(of: self) { $0.total } }
  /// How many connections there are.
  var openCount: Int { connections.withLock(of: self) { $0.open } }

  func url(_ path: String = "/") -> String { "http://127.0.0.1:\(port)\(path)" }

  private init(_ port: Int) {
    self.port = port
    requests = Mutex([])
    connections = Mutex((0, 0))
  }

  /// Runs a body with a server, whose handler answers each connection.
  static func run(
    _ handler: @escaping @Sendable (RawConnection) async throws -> Void,
    body: (RawServer) async throws -> Void
  ) async throws {
    let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      // Nothing is read before there is somebody who takes it.
      .childChannelOption(.autoRead, value: false)
      .bind(host: "127.0.0.1", port: 0) { channel in
        channel.eventLoop.makeSucceededFuture(channel)
      }
    let server = RawServer(listener.channel.localAddress?.port ?? 0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await server.serve(listener, handler) }
      let result: Result<Void, any Error>
      do { result = .success(try await body(server)) } catch { result = .failure(error) }
      group.cancelAll()
      try? await listener.channel.close()
      while let _ = await group.nextResult() {}
      try result.get()
    }
  }

  private func serve(
    _ listener: NIOAsyncChannel<any Channel, Never>,
    _ handler: @escaping @Sendable (RawConnection) async throws -> Void
  ) async throws {
    try await listener.executeThenClose { inbound in
      try await withThrowingDiscardingTaskGroup { group in
        for try await channel in inbound {
          group.addTask { [self] in
            let number = connections.withLock(of: self) { state in
              state.total += 1
              state.open += 1
              return state.total
            }
            let wrapping = channel.eventLoop.submit {
              try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
                wrappingChannelSynchronously: channel,
                configuration: .init(isOutboundHalfClosureEnabled: true))
            }
            try? await wrapping.get().executeThenClose { inbound, outbound in
              try await channel.setOption(.autoRead, value: true).get()
              let connection = RawConnection(number, inbound, outbound) { request in
                self.requests.withLock(of: self) { $0.append(request) }
              }
              try await handler(connection)
              // All bytes leave before the end does.
              outbound.finish()
              try await connection.untilEnd()
            }
            connections.withLock(of: self) { $0.open -= 1 }
          }
        }
      }
    }
  }

  /// Answers each request of each connection with what a function returns.
  static func answering(
    _ answer: @escaping @Sendable (RawRequest) -> String, body: (RawServer) async throws -> Void
  ) async throws {
    try await run { connection in
      while let request = try await connection.request() {
        try await connection.send(answer(request))
      }
    } body: { server in
      try await body(server)
    }
  }
}

/// A request as it came.
struct RawRequest: Sendable {
  let method: String
  let target: String
  let head: [String]
  var body: [UInt8] = []
  let connection: Int

  subscript(name: String) -> String? {
    for line in head.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      if parts.first?.lowercased() == name.lowercased() {
        return parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
      }
    }
    return nil
  }
}

/// One connection of a `RawServer`.
final class RawConnection {
  let number: Int
  private var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
  private var bytes: [UInt8] = []
  private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  private let note: @Sendable (RawRequest) -> Void

  init(
    _ number: Int, _ inbound: NIOAsyncChannelInboundStream<ByteBuffer>,
    _ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>,
    _ note: @escaping @Sendable (RawRequest) -> Void
  ) {
    self.number = number
    self.inbound = inbound.makeAsyncIterator()
    self.outbound = outbound
    self.note = note
  }

  func send(_ text: String) async throws { try await send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) async throws {
    try await outbound.write(ByteBuffer(bytes: bytes))
  }

  /// The next request with its whole body; nil at the end of the connection.
  func request(withBody: Bool = true) async throws -> RawRequest? {
    guard let head = try await head() else { return nil }
    let lines = head.components("\r\n")
    let words = lines[0].split(separator: " ").map(String.init)
    var request = RawRequest(
      method: words[0], target: words.count > 1 ? words[1] : "", head: lines, connection: number)
    if withBody {
      if let length = request["content-length"].flatMap({ Int($0) }) {
        request.body = try await take(length)
      } else if request["transfer-encoding"] == "chunked" {
        request.body = try await chunked()
      }
    }
    note(request)
    return request
  }

  /// Waits until the other side ends the connection; drops what it sends.
  func untilEnd() async throws {
    while try await fill() { bytes = [] }
  }

  private func fill() async throws -> Bool {
    guard let buffer = try await inbound.next(isolation: #isolation) else { return false }
    bytes += buffer.readableBytesView
    return true
  }

  private func head() async throws -> String? {
    let end = Array("\r\n\r\n".utf8)
    var searched = 0
    while true {
      if bytes.count >= 4 {
        for index in searched...(bytes.count - 4)
        where bytes[index] == 13 && Array(bytes[index..<(index + 4)]) == end {
          let head = String(decoding: bytes[..<index], as: UTF8.self)
          bytes.removeFirst(index + 4)
          return head
        }
        searched = max(0, bytes.count - 3)
      }
      guard try await fill() else { return nil }
    }
  }

  private func take(_ count: Int) async throws -> [UInt8] {
    while bytes.count < count { guard try await fill() else { break } }
    let taken = Array(bytes.prefix(count))
    bytes.removeFirst(taken.count)
    return taken
  }

  private func chunked() async throws -> [UInt8] {
    var body: [UInt8] = []
    while true {
      while !bytes.contains(10) { guard try await fill() else { return body } }
      let line = bytes.prefix { $0 != 13 }
      bytes.removeFirst(line.count + 2)
      let count = Int(String(decoding: line, as: UTF8.self), radix: 16) ?? 0
      body += try await take(count)
      _ = try await take(2)
      if count == 0 { return body }
    }
  }
}

extension String {
  func components(_ separator: String) -> [String] {
    split(separator: separator, omittingEmptySubsequences: false).map(String.init)
  }
}

/// A whole response.
func http(_ status: String, _ fields: [String] = [], _ body: String = "") -> String {
  let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.utf8.count)"] + fields
  return lines.joined(separator: "\r\n") + "\r\n\r\n" + body
}

/// Runs a body with a service, which is closed afterwards and may hold nothing then.
func withService(
  _ configuration: HTTPConfiguration = HTTPConfiguration(),
  _ body: (HTTPService) async throws -> Void
) async throws {
  let service = try HTTPService(configuration)
  let result: Result<Void, any Error>
  do { result = .success(try await body(service)) } catch { result = .failure(error) }
  await service.close()
  try result.get()
  #expect(service.counters.open == 0)
}

extension HTTPService {
  /// Sends a request that has to be answered 200.
  func succeed(
    _ request: HTTPRequest, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let status = try await send(request).status
    #expect(status == 200, sourceLocation: sourceLocation)
  }
}

/// The error that a body throws.
func linkFailure<Value>(
  _ body: () async throws -> Value, sourceLocation: SourceLocation = #_sourceLocation
) async throws -> LongLinkError {
  do {
    let value = try await body()
    Issue.record("no error, but \(value)", sourceLocation: sourceLocation)
  } catch let error as LongLinkError {
    return error
  } catch {
    Issue.record("an error of another type: \(error)", sourceLocation: sourceLocation)
  }
  throw CancellationError()
}

/// Waits until something is so.
func until(
  _ condition: () async -> Bool, sourceLocation: SourceLocation = #_sourceLocation
) async throws {
  for _ in 0..<20_000 {
    if await condition() { return }
    try await Task.sleep(for: .milliseconds(1))
  }
  Issue.record("it does not come about", sourceLocation: sourceLocation)
}
#endif
