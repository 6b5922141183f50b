// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LongLinkCore
import Testing

@testable import LongLinkTransport

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Look-ups of names that no server answers, and what they cost others.
@Suite(.timeLimit(.minutes(5))) struct ResolverTurnsTests {
  /// Look-ups that hang until they are let go, if their names begin with "dead".
  private final class Names: Sendable {
    private let gate = DispatchSemaphore(value: 0)
    let begun = Shared([String]())
    let answered = Shared([String]())

    func lookUp(_ host: String) -> Result<[SocketAddress], ResolveError> {
      begun.update { $0.append(host) }
      if host.hasPrefix("dead") { gate.wait() }
      return .success([])
    }

    func release(_ count: Int) {
      for _ in 0..<count { gate.signal() }
    }

    func wait(forBegun hosts: [String]) async {
      while begun.value.count < hosts.count, !Task.isCancelled { await Task.yield() }
      #expect(begun.value.sorted() == hosts.sorted())
    }

    func wait(forAnswered hosts: [String]) async {
      while answered.value.count < hosts.count, !Task.isCancelled { await Task.yield() }
      #expect(answered.value.sorted() == hosts.sorted())
    }
  }

  private let names = Names()
  private let owners = (0..<3).map { _ in LookUpOwner() }

  private func make(threads: Int, mostWaiting: Int = 1_024) -> Resolver {
    Resolver(mostThreads: threads, mostWaiting: mostWaiting) { [names] host in
      names.lookUp(host)
    }
  }

  private func ask(_ host: String, _ resolver: Resolver, for owner: Int) {
    resolver.resolve(host: host, port: 1, for: owners[owner]) { [names] _ in
      names.answered.update { $0.append("\(owner): \(host)") }
    }
  }

  @Test func `without a thread a look-up waits for one that runs, or fails`() async {
    let failures = Shared([EAGAIN, EAGAIN, 0, EAGAIN])
    let errors = Shared([ResolveError]())
    let resolver = Resolver(mostThreads: 4) { [names] host in
      names.lookUp(host)
    } startThread: { body in
      let failure = failures.update { $0.removeFirst() }
      if failure == 0 { DispatchQueue.global().async(execute: body) }
      return failure
    }
    for host in ["fails1", "fails2"] {
      resolver.resolve(host: host, port: 1, for: owners[0]) { result in
        if case .failure(let error) = result { errors.update { $0.append(error) } }
      }
    }
    #expect(errors.value.map(\.host) == ["fails1", "fails2"])
    #expect(errors.value.map(\.code) == [EAI_SYSTEM, EAI_SYSTEM])
    #expect(errors.value.first?.reason.contains("start a thread") == true)
    ask("dead", resolver, for: 0)
    await names.wait(forBegun: ["dead"])
    ask("there", resolver, for: 1)
    #expect(resolver.waiting == 1)
    names.release(1)
    await names.wait(forAnswered: ["0: dead", "1: there"])
    #expect(failures.value.isEmpty)
  }

  @Test func `names that hang hold two threads of an owner, and leave one for others`() async {
    let resolver = make(threads: 4)
    for host in ["dead1", "dead2", "dead3"] {
      ask(host, resolver, for: 0)
      await names.wait(forBegun: ["dead1", "dead2"].filter { $0 <= host })
      // As a client does when a round takes too long.
      if host != "dead3" { resolver.withdraw(owners[0]) }
    }
    ask("dead4", resolver, for: 1)
    ask("dead5", resolver, for: 1)
    await names.wait(forBegun: ["dead1", "dead2", "dead4"])
    #expect(resolver.waiting == 2)
    ask("there", resolver, for: 2)
    await names.wait(forAnswered: ["2: there"])
    // Each has its turn when a thread is free.
    names.release(5)
    await names.wait(forAnswered: ["0: dead3", "1: dead4", "1: dead5", "2: there"])
    #expect(resolver.waiting == 0)
  }

  @Test
  func `where threads are free, those that hang after an owner left them hold up none of its own`()
    async
  {
    let resolver = make(threads: 16)
    for host in ["dead1", "dead2", "dead3"] {
      ask(host, resolver, for: 0)
      resolver.withdraw(owners[0])
    }
    // The network has changed, and this one can be looked up.
    ask("there", resolver, for: 0)
    await names.wait(forAnswered: ["0: there"])
    names.release(3)
  }

  @Test func `equal names with different ports share a look-up`() async throws {
    let address = SocketAddress.ipv4(127, 0, 0, 1, port: 0)
    let (begun, found) = (Shared(0), Shared([SocketAddress]()))
    let gate = DispatchSemaphore(value: 0)
    let resolver = Resolver(mostThreads: 2) { _ in
      begun.update { $0 += 1 }
      gate.wait()
      return .success([address])
    }
    for port: UInt16 in [1, 2] {
      resolver.resolve(host: "name", port: port, for: owners[0]) { result in
        found.update { $0 += (try? result.get()) ?? [] }
      }
    }
    gate.signal()
    while found.value.count < 2, !Task.isCancelled { await Task.yield() }
    #expect(begun.value == 1)
    #expect(found.value == [address.with(port: 1), address.with(port: 2)])
  }

  @Test func `a query that is withdrawn while it waits never runs`() async {
    let resolver = make(threads: 1)
    ask("dead", resolver, for: 0)
    ask("unwanted", resolver, for: 1)
    #expect(resolver.waiting == 1)
    resolver.withdraw(owners[1])
    #expect(resolver.waiting == 0)
    ask("next", resolver, for: 2)
    names.release(1)
    await names.wait(forAnswered: ["0: dead", "2: next"])
    #expect(names.begun.value == ["dead", "next"])
  }

  @Test func `equal names share a look-up, but not one that an owner has left`() async {
    let resolver = make(threads: 3)
    ask("dead", resolver, for: 0)
    ask("dead", resolver, for: 1)
    await names.wait(forBegun: ["dead"])
    resolver.withdraw(owners[0])
    // The network of this one may be another.
    ask("dead", resolver, for: 2)
    await names.wait(forBegun: ["dead", "dead"])
    names.release(2)
    await names.wait(forAnswered: ["1: dead", "2: dead"])
  }

  @Test func `equal names that wait share a look-up`() async {
    let resolver = make(threads: 1)
    ask("dead", resolver, for: 0)
    ask("name", resolver, for: 1)
    ask("name", resolver, for: 2)
    #expect(resolver.waiting == 2)
    names.release(1)
    await names.wait(forAnswered: ["0: dead", "1: name", "2: name"])
    #expect(names.begun.value == ["dead", "name"])
  }

  @Test func `beyond the bound, a query fails at once`() async throws {
    let resolver = make(threads: 1, mostWaiting: 1)
    ask("dead", resolver, for: 0)
    ask("name", resolver, for: 1)
    let result = Shared(Result<[SocketAddress], ResolveError>.success([]))
    resolver.resolve(host: "other", port: 1, for: owners[2]) { outcome in
      result.update { $0 = outcome }
    }
    let error = #expect(throws: ResolveError.self) { try result.value.get() }
    #expect(error?.host == "other" && error?.code == EAI_AGAIN)
    #expect(error?.reason.hasPrefix("1 look-ups wait already") == true)
    names.release(1)
    await names.wait(forAnswered: ["0: dead", "1: name"])
  }
}
