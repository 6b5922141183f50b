// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@_spi(Loop) @testable import LongLinkTransport

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// What concerns the whole process is tried in one of its own.
@Suite struct ProcessTests {
  @Test func `a listener survives having no descriptor left`() async {
    await #expect(processExitsWith: .success) {
      // The runtime's timers open descriptors at their first use, and trap if there are none.
      try await Task.sleep(for: .nanoseconds(1))
      for poller in PollerKind.all { try exhaustDescriptors(poller) }
    }
  }

  @Test func `no descriptor is left open`() async {
    await #expect(processExitsWith: .success) {
      // What the runtime opens at its first use does not count.
      try await useALoop(.systemDefault)
      let before = openDescriptors()
      let timers = openTimers()
      for poller in PollerKind.all {
        for _ in 0..<5 { try await useALoop(poller) }
        try refuseAndFail(poller)
      }
      #expect(openDescriptors() == before)
      // A few may be the runtime's.
      #expect(openTimers() - timers < 5)
    }
  }

  @Test func `a loop cannot be shut down from itself`() async {
    await #expect(processExitsWith: .failure) {
      let loop = try EventLoop()
      loop.execute { loop.shutDown() }
      loop.shutDown()
    }
  }

  @Test func `access to a loop's objects from elsewhere traps`() async {
    await #expect(processExitsWith: .failure) {
      let loop = try EventLoop()
      _ = LoopBound(1, on: loop).value
    }
    await #expect(processExitsWith: .failure) {
      let loop = try EventLoop()
      loop.checkIsolated()
    }
    await #expect(processExitsWith: .failure) {
      let bench = try Bench(.systemDefault)
      let (client, _) = try bench.pair()
      client.close()
      client.beginReading()
    }
  }
}

/// Lets connections wait while every descriptor that the process may have is taken.
private func exhaustDescriptors(_ poller: PollerKind) throws {
  #if canImport(Glibc)
  let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  #else
  let resource = RLIMIT_NOFILE
  #endif
  var limit = rlimit()
  unsafe getrlimit(resource, &limit)
  limit.rlim_cur = 128
  unsafe setrlimit(resource, &limit)

  let bench = try Bench(poller)
  let listener = try bench.listen()
  let watch = Watch()
  bench.onLoop {
    listener.attach(watch, token: 0)
    listener.setInterest(.read)
  }
  let turnedAway = try bench.connect(to: listener.localAddress)
  turnedAway.beginReading()
  try bench.turn("a connection", until: { !watch.calls.isEmpty })

  var fillers: [CInt] = []
  while true {
    let filler = unsafe open("/dev/null", O_RDONLY)
    if filler < 0 { break }
    fillers.append(filler)
  }
  let error = #expect(throws: SocketError.self) {
    try bench.onLoop { _ = try listener.accept() }
  }
  #expect(error?.errno == EMFILE)
  #expect(error?.operation == "accept")
  try bench.turn("its end", until: { turnedAway.hasEnded || turnedAway.failure != nil })
  #expect(try bench.onLoop { try listener.accept() == nil })

  for filler in fillers { close(filler) }
  let welcome = try bench.connect(to: listener.localAddress)
  let server = try bench.accept(from: listener)
  try welcome.write([1])
  server.beginReading()
  try bench.turn("a byte", until: { server.received == [1] })
  bench.onLoop { listener.close() }
  for end in [turnedAway, welcome, server] { end.close() }
}

/// Listens, connects and ends a loop while streams are open and others were dropped.
private func useALoop(_ poller: PollerKind) async throws {
  let loop = try EventLoop(configuration: .init(poller: poller))
  await withCheckedContinuation { continuation in
    loop.execute {
      continuation.resume()
      guard
        let listener = try? loop.driver.listen(
          on: .ipv4(127, 0, 0, 1, port: 0),
          options: SocketOptions()
        )
      else { return }
      listener.attach(Watch(), token: 0)
      listener.setInterest(.read)
      for _ in 0..<4 {
        let stream = try? loop.driver.connect(
          to: listener.localAddress,
          options: SocketOptions()
        )
        stream?.attach(Watch(), token: 0)
        stream?.setInterest([.read, .write])
      }
      _ = try? listener.accept()?.adopt(on: loop)
      _ = try? listener.accept()
    }
  }
  loop.shutDown()
}

/// Fails in the ways that leave something half made.
private func refuseAndFail(_ poller: PollerKind) throws {
  let bench = try Bench(poller)
  #expect(throws: SocketError.self) { try bench.listen(on: .unix(path: "/nowhere/at/all")) }
  #expect(throws: SocketError.self) { try bench.connect(to: .unix(path: "/nowhere/at/all")) }
  #expect(throws: SocketError.self) { try bench.listen(on: .ipv4(8, 8, 8, 8, port: 1)) }
  _ = try? bench.connect(to: .ipv4(127, 0, 0, 1, port: 1))
}
