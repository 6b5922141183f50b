// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LongLinkCore
import Testing

@testable import LongLinkTransport

private typealias Outcome = Result<[SocketAddress], ResolveError>

@Suite struct ResolverTests {
  /// What a loop makes of a name, and whether it says so on the loop.
  private func resolve(_ host: String, on loop: EventLoop) async -> Outcome {
    await withCheckedContinuation { continuation in
      loop.execute {
        loop.driver.resolve(host: host, port: 80, for: LookUpOwner()) { outcome in
          #expect(loop.isCurrent)
          continuation.resume(returning: outcome)
        }
      }
    }
  }

  @Test(arguments: ["127.0.0.1", "::1", "[2001:db8::1]"])
  func `a literal is answered without a look-up`(host: String) async throws {
    let resolver = Resolver(mostThreads: 1) { _ in fatalError("it was looked up") }
    let driver = KernelDriver(poller: try PollerKind.systemDefault.make(), resolver: resolver)
    let loop = EventLoop(driver: driver, name: "literals")
    try loop.start()
    let address = try #require(SocketAddress(literal: host, port: 80))
    #expect(await resolve(host, on: loop) == .success([address]))
    loop.shutDown()
  }

  @Test func `localhost has an address of the loopback, and each once`() async throws {
    let loop = try EventLoop()
    let addresses = try await resolve("localhost", on: loop).get()
    #expect(Set(addresses).count == addresses.count)
    #expect(addresses.contains { $0.host == "127.0.0.1" || $0.host == "::1" })
    #expect(addresses.allSatisfy { $0.port == 80 })
    loop.shutDown()
  }

  @Test(arguments: ["no such name", "", "a..b", "nul\u{0}.example"])
  func `a name that does not exist is an error with a reason`(host: String) async throws {
    let loop = try EventLoop()
    let outcome = await resolve(host, on: loop)
    let error = #expect(throws: ResolveError.self) { try outcome.get() }
    #expect(error?.host == host)
    #expect(error?.reason.isEmpty == false)
    #expect(error?.code != 0)
    loop.shutDown()
  }

  @Test func `no more look-ups run at once than threads are allowed`() async {
    let gate = DispatchSemaphore(value: 0)
    let running = Shared(0)
    let most = Shared(0)
    let resolver = Resolver(mostThreads: 2) { _ in
      running.update { running in
        running += 1
        most.update { $0 = max($0, running) }
      }
      gate.wait()
      running.update { $0 -= 1 }
      return .success([])
    }
    let answered = Shared(0)
    for index in 0..<6 {
      resolver.resolve(host: "\(index)", port: 0, for: LookUpOwner()) { _ in
        answered.update { $0 += 1 }
      }
    }
    while running.value < 2 { await Task.yield() }
    for _ in 0..<6 { gate.signal() }
    while answered.value < 6 { await Task.yield() }
    #expect(most.value == 2)
    // The threads have ended or will; others begin.
    gate.signal()
    await withCheckedContinuation { continuation in
      resolver.resolve(host: "later", port: 0, for: LookUpOwner()) { _ in continuation.resume() }
    }
  }

  @Test func `nothing is answered once the loop was shut down`() async throws {
    let gate = DispatchSemaphore(value: 0)
    let resolver = Resolver(mostThreads: 1) { _ in
      gate.wait()
      return .success([])
    }
    let driver = KernelDriver(poller: try PollerKind.systemDefault.make(), resolver: resolver)
    let loop = EventLoop(driver: driver, name: "late")
    try loop.start()
    let answered = Shared(false)
    loop.execute {
      loop.driver.resolve(host: "slow", port: 1, for: LookUpOwner()) { _ in
        answered.update { $0 = true }
      }
    }
    loop.shutDown()
    gate.signal()
    gate.signal()
    // The one thread comes to this after it has handed the first answer over.
    await withCheckedContinuation { continuation in
      resolver.resolve(host: "marker", port: 1, for: LookUpOwner()) { _ in
        loop.execute { continuation.resume() }
      }
    }
    #expect(!answered.value)
  }
}
