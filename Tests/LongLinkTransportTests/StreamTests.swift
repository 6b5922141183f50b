// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTestSupport
import Testing

@testable import LongLinkTransport

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

@Suite struct StreamTests {
  /// Sends both ways and expects it to arrive.
  private func converse(_ bench: Bench, over address: SocketAddress) throws {
    let (client, server) = try bench.pair(over: address)
    client.beginReading()
    server.beginReading()
    try client.write([1, 2, 3])
    try bench.turn("to the server", until: { server.received == [1, 2, 3] })
    try server.write([4, 5])
    try bench.turn("to the client", until: { client.received == [4, 5] })
    #expect(client.stream.localAddress != nil)
    client.close()
    try bench.turn("the end", until: { server.hasEnded })
    server.close()
  }

  @Test(arguments: PollerKind.all)
  func `bytes go both ways over IPv4`(poller: PollerKind) throws {
    try converse(Bench(poller), over: .ipv4(127, 0, 0, 1, port: 0))
  }

  @Test(.unless(ipv6Problem), arguments: PollerKind.all)
  func `bytes go both ways over IPv6`(poller: PollerKind) throws {
    try converse(Bench(poller), over: #require(SocketAddress(literal: "::1", port: 0)))
  }

  @Test(arguments: PollerKind.all)
  func `bytes go both ways over a Unix-domain socket`(poller: PollerKind) throws {
    let folder = TemporaryFolder()
    try converse(Bench(poller), over: .unix(path: folder.path + "/s"))
  }

  @Test(arguments: PollerKind.all)
  func `both ends agree on their addresses`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let (client, server) = try bench.pair()
    #expect(client.stream.localAddress == server.stream.peerAddress)
    #expect(client.stream.peerAddress == server.stream.localAddress)
    client.close()
    server.close()
  }

  @Test(arguments: PollerKind.all)
  func `a refused connect says so, with the address`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let listener = try bench.listen()
    let address = listener.localAddress
    bench.onLoop { listener.close() }
    // Most systems tell at once on the loopback, and none has to.
    let failure = #expect(throws: SocketError.self) {
      let client = try bench.connect(to: address)
      defer { client.close() }
      let watch = Watch()
      bench.onLoop {
        client.stream.attach(watch, token: 0)
        client.stream.setInterest(.write)
      }
      try bench.turn("the outcome", until: { !watch.calls.isEmpty })
      _ = try bench.onLoop { try client.stream.finishConnecting() }
    }
    #expect(failure?.errno == ECONNREFUSED)
    #expect(failure?.address == address)
  }

  @Test(arguments: PollerKind.all)
  func `a side that has ended its writing still reads`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let (client, server) = try bench.pair()
    client.beginReading()
    server.beginReading()
    try client.write([1])
    bench.onLoop { client.stream.shutDownWriting() }
    try bench.turn("the end", until: { server.hasEnded })
    #expect(server.received == [1])
    try server.write([2])
    try bench.turn("the answer", until: { client.received == [2] })
    #expect(!client.hasEnded)
    client.close()
    server.close()
  }

  @Test(arguments: PollerKind.all)
  func `a reset reaches the peer as an error`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let (client, server) = try bench.pair()
    server.beginReading()
    bench.onLoop { client.stream.reset() }
    try bench.turn("the reset", until: { server.failure != nil })
    #expect(server.failure?.errno == ECONNRESET)
    #expect(server.failure?.operation == "read")
    server.close()
  }

  @Test(arguments: PollerKind.all)
  func `writing to a peer that is gone is an error and no signal`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let (client, server) = try bench.pair()
    server.beginReading()
    bench.onLoop { client.stream.reset() }
    try bench.turn("the reset", until: { server.failure != nil })
    let error = #expect(throws: SocketError.self) { try server.write([1]) }
    #expect(error?.errno == EPIPE)
    server.close()
  }

  @Test(arguments: PollerKind.all)
  func `a full socket takes no more, and says when it does again`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let (client, server) = try bench.pair()
    let chunk = [UInt8](repeating: 7, count: 1 << 20)
    var sent = 0
    func fill() throws {
      while true {
        let count = try bench.onLoop { try unsafe client.stream.write(chunk.span.bytes) }
        if count == 0 { return }
        sent += count
      }
    }
    try fill()
    let watch = Watch()
    bench.onLoop {
      client.stream.attach(watch, token: 3)
      client.stream.setInterest(.write)
    }
    bench.poll()
    #expect(watch.calls.isEmpty)
    server.beginReading()
    try bench.turn("room", until: { !watch.calls.isEmpty })
    #expect(watch.calls[0] == Watch.Call(readiness: .write, token: 3))
    client.close()
    try bench.turn("everything", until: { server.hasEnded })
    #expect(server.received.count == sent)
    server.close()
  }

  @Test func `a stream reports how much the peer's system has not taken`() throws {
    let bench = try Bench(.systemDefault)
    let (client, server) = try bench.pair()
    #expect(bench.onLoop { client.stream.unacknowledgedBytes } == 0)
    let chunk = [UInt8](repeating: 7, count: 1 << 20)
    var sent = 0
    while true {
      let count = try bench.onLoop { try unsafe client.stream.write(chunk.span.bytes) }
      if count == 0 { break }
      sent += count
    }
    // The peer's system has room for less than this side's and its own together hold.
    let waiting = bench.onLoop { client.stream.unacknowledgedBytes }
    #expect((1...sent).contains(waiting))
    server.beginReading()
    try bench.turn("everything", until: { server.received.count == sent })
    while bench.onLoop({ client.stream.unacknowledgedBytes }) > 0 { bench.poll() }
    client.close()
    server.close()
  }

  @Test(arguments: PollerKind.all)
  func `a stream that is dropped closes itself`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let (client, server) = try bench.pair()
    server.beginReading()
    bench.onLoop {
      client.stream.attach(Watch(), token: 0)
      client.stream.setInterest(.read)
    }
    _ = consume client
    try bench.turn("the end", until: { server.hasEnded })
    server.close()
  }

  @Test(arguments: PollerKind.all)
  func `a closed stream lets go of its handler`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let (client, server) = try bench.pair()
    var watch: Watch? = Watch()
    weak let remembered = watch
    bench.onLoop { client.stream.attach(watch!, token: 0) }
    watch = nil
    #expect(remembered != nil)
    client.close()
    #expect(remembered == nil)
    server.close()
  }

  @Test(arguments: PollerKind.all)
  func `options are set on both ends`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let options = SocketOptions(userTimeout: 1_500_000_001, sendBuffer: 65536)
    let listener = try bench.onLoop {
      try bench.driver.listen(on: .ipv4(127, 0, 0, 1, port: 0), options: options)
    }
    let client = try bench.onLoop {
      try bench.driver.connect(to: listener.localAddress, options: options)
    }
    let server = try bench.accept(from: listener)
    for stream in [client, server.stream] {
      let descriptor = try #require(stream as? KernelTransport).endpoint.descriptor
      #expect(option(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY) != 0)
      #expect(option(descriptor, SOL_SOCKET, SO_KEEPALIVE) != 0)
      #expect(option(descriptor, SOL_SOCKET, SO_SNDBUF) >= 65536)
      #if os(Linux)
      #expect(option(descriptor, CInt(IPPROTO_TCP), CInt(TCP_USER_TIMEOUT)) == 1501)
      #expect(option(descriptor, CInt(IPPROTO_TCP), CInt(TCP_NOTSENT_LOWAT)) == 131_072)
      #endif
      #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
      #expect(fcntl(descriptor, F_GETFL) & O_NONBLOCK != 0)
    }
    bench.onLoop {
      client.close()
      listener.close()
    }
    server.close()
  }

  private func option(_ descriptor: CInt, _ level: CInt, _ name: CInt) -> CInt {
    var value: CInt = -1
    var size = socklen_t(MemoryLayout<CInt>.size)
    unsafe getsockopt(descriptor, level, name, &value, &size)
    return value
  }
}
