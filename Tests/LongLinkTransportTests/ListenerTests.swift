// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@testable import LongLinkTransport

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

@Suite struct ListenerTests {
  @Test(arguments: PollerKind.all)
  func `a listener reports the port that it was given`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let listener = try bench.listen()
    #expect(try #require(listener.localAddress.port) > 0)
    #expect(listener.localAddress.host == "127.0.0.1")
    #expect(try bench.onLoop { try listener.accept() == nil })
    bench.onLoop { listener.close() }
  }

  @Test(arguments: PollerKind.all)
  func `an address in use is an error`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let listener = try bench.listen()
    let error = #expect(throws: SocketError.self) { try bench.listen(on: listener.localAddress) }
    #expect(error?.errno == EADDRINUSE)
    #expect(error?.operation == "listen")
    #expect(error?.address == listener.localAddress)
    bench.onLoop { listener.close() }
  }

  @Test(arguments: PollerKind.all)
  func `accepting pauses while there is no interest`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let listener = try bench.listen()
    let watch = Watch()
    bench.onLoop {
      listener.attach(watch, token: 4)
      listener.setInterest(.read)
      listener.setInterest([])
    }
    let client = try bench.connect(to: listener.localAddress)
    bench.poll()
    #expect(watch.calls.isEmpty)
    bench.onLoop { listener.setInterest(.read) }
    try bench.turn("a connection", until: { !watch.calls.isEmpty })
    #expect(watch.calls[0] == .init(readiness: .read, token: 4))
    bench.onLoop { listener.close() }
    client.close()
  }

  @Test(arguments: PollerKind.all)
  func `a connection can be adopted by another loop`(poller: PollerKind) throws {
    let (bench, other) = (try Bench(poller), try Bench(poller))
    let listener = try bench.listen()
    let client = try bench.connect(to: listener.localAddress)
    let watch = Watch()
    bench.onLoop {
      listener.attach(watch, token: 0)
      listener.setInterest(.read)
    }
    try bench.turn("a connection", until: { !watch.calls.isEmpty })
    let accepted = try #require(try bench.onLoop { try listener.accept() })
    #expect(accepted.peerAddress == client.stream.localAddress)
    let server = End(try other.onLoop { try accepted.adopt(on: other.loop) }, bench: other)
    server.beginReading()
    try client.write([1, 2])
    try other.turn("the bytes", until: { server.received == [1, 2] })
    bench.onLoop { listener.close() }
    client.close()
    server.close()
  }

  @Test(arguments: PollerKind.all)
  func `a connection that is not adopted is closed`(poller: PollerKind) throws {
    let bench = try Bench(poller)
    let listener = try bench.listen()
    let client = try bench.connect(to: listener.localAddress)
    client.beginReading()
    try bench.turn("a connection") { (try? bench.onLoop { try listener.accept() }) != nil }
    try bench.turn("the end", until: { client.hasEnded || client.failure != nil })
    bench.onLoop { listener.close() }
    client.close()
  }

  @Test func `the file of a Unix-domain socket goes with its listener`() throws {
    let folder = TemporaryFolder()
    let path = folder.path + "/s"
    let bench = try Bench(.systemDefault)
    let listener = try bench.listen(on: .unix(path: path))
    #expect(listener.localAddress == .unix(path: path))
    #expect(SystemCall.socketFile(at: path) != nil)
    bench.onLoop { listener.close() }
    #expect(unsafe access(path, F_OK) != 0)
  }

  @Test func `a file that a dead listener has left is replaced`() throws {
    let folder = TemporaryFolder()
    let path = folder.path + "/s"
    let dead = try Socket(AF_UNIX)
    try SystemCall.bind(dead.descriptor, to: .unix(path: path))
    try SystemCall.listen(dead.descriptor, backlog: 1)
    dead.close()
    let bench = try Bench(.systemDefault)
    let (client, server) = try bench.pair(over: .unix(path: path))
    client.close()
    server.close()
    #expect(unsafe access(path, F_OK) != 0)
  }

  @Test func `a file with a live listener, or that is no socket, stays`() throws {
    let folder = TemporaryFolder()
    let path = folder.path + "/s"
    let bench = try Bench(.systemDefault)
    let listener = try bench.listen(on: .unix(path: path))
    #expect(throws: SocketError.self) { try bench.listen(on: .unix(path: path)) }
    let client = try bench.connect(to: .unix(path: path))
    client.close()
    bench.onLoop { listener.close() }

    unsafe close(open(path, O_CREAT | O_WRONLY, 0o600))
    let error = #expect(throws: SocketError.self) { try bench.listen(on: .unix(path: path)) }
    #expect(error?.errno == EADDRINUSE)
    #expect(unsafe unlink(path) == 0)
  }

  @Test func `a successor's file survives its predecessor's close`() throws {
    let folder = TemporaryFolder()
    let path = folder.path + "/s"
    let bench = try Bench(.systemDefault)
    let former = try bench.listen(on: .unix(path: path))
    unsafe unlink(path)
    let latter = try bench.listen(on: .unix(path: path))
    bench.onLoop { former.close() }
    #expect(SystemCall.socketFile(at: path) != nil)
    bench.onLoop { latter.close() }
  }
}
