// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

import Testing

@testable import LongLinkTransport

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// An actor that lives on a loop.
private actor Resident {
  nonisolated let loop: EventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe loop.asUnownedSerialExecutor()
  }
  private(set) var count = 0

  init(on loop: EventLoop) {
    self.loop = loop
  }

  func add() -> Bool {
    count += 1
    return loop.isCurrent
  }

  nonisolated func addAssumingIsolation() {
    assumeIsolated { $0.count += 1 }
  }

  func addTwiceAcrossASuspension() async {
    let before = count
    await Task.yield()
    count = max(count, before) + 1
  }
}

@Suite struct ExecutorTests {
  @Test(arguments: PollerKind.all)
  func `an actor runs on its loop, wherever it is called from`(poller: PollerKind) async throws {
    let loop = try EventLoop(configuration: .init(poller: poller))
    let resident = Resident(on: loop)
    await withTaskGroup { group in
      for index in 0..<100 {
        if index % 2 == 0 {
          group.addTask { await resident.add() }
        } else {
          group.addTask(executorPreference: loop) { await resident.add() }
        }
      }
      for await onLoop in group { #expect(onLoop) }
    }
    #expect(await resident.count == 100)
    loop.shutDown()
  }

  @Test func `a task that prefers the loop, and its children, stay on it`() async throws {
    let loop = try EventLoop()
    let places = await Task(executorPreference: loop) {
      var places = [loop.isCurrent]
      await Task.yield()
      places.append(loop.isCurrent)
      async let child = loop.isCurrent
      places.append(await child)
      try? await loop.sleep(for: .milliseconds(1))
      places.append(loop.isCurrent)
      await withTaskGroup { group in
        for _ in 0..<10 { group.addTask { loop.isCurrent } }
        for await place in group { places.append(place) }
      }
      return places
    }.value
    #expect(places.count == 14)
    #expect(places.allSatisfy { $0 })
    loop.shutDown()
  }

  @Test func `the loop vouches for isolation only on its own thread`() async throws {
    let loop = try EventLoop()
    #expect(loop.isIsolatingCurrentContext() == false)
    let resident = Resident(on: loop)
    await withCheckedContinuation { continuation in
      loop.execute {
        resident.addAssumingIsolation()
        continuation.resume()
      }
    }
    await Task(executorPreference: loop) { resident.addAssumingIsolation() }.value
    #expect(await resident.count == 2)
    loop.shutDown()
  }

  @Test func `closures from many threads keep the order of each`() async throws {
    let loop = try EventLoop()
    let seen = Shared([[Int]](repeating: [], count: 8))
    await withTaskGroup { group in
      for sender in 0..<8 {
        group.addTask {
          for index in 0..<2000 {
            loop.execute { seen.update { $0[sender].append(index) } }
          }
        }
      }
    }
    loop.shutDown()
    #expect(seen.value == Array(repeating: Array(0..<2000), count: 8))
  }

  @Test func `a suspended task resumes on the loop`() async throws {
    let loop = try EventLoop()
    let resident = Resident(on: loop)
    await withTaskGroup { group in
      for _ in 0..<50 {
        group.addTask(executorPreference: loop) { await resident.addTwiceAcrossASuspension() }
      }
    }
    #expect(await resident.count >= 1)
    loop.shutDown()
  }

  @Test func `the loop's thread has its name and takes no signals of the process`() async throws {
    let loop = try EventLoop(name: "a-loop")
    let (name, blocksTermination) = await Task(executorPreference: loop) { threadFacts() }.value
    #expect(name == "a-loop")
    #expect(blocksTermination)
    loop.shutDown()
  }

  @Test func `the shared loop is always the same one`() async {
    #expect(EventLoop.shared === EventLoop.shared)
    #expect(await Task(executorPreference: EventLoop.shared) { EventLoop.shared.isCurrent }.value)
  }
}

private func threadFacts() -> (name: String, blocksTermination: Bool) {
  let name = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
    unsafe buffer.initialize(repeating: 0)
    #if os(Linux)
    let file = unsafe open("/proc/thread-self/comm", O_RDONLY | O_CLOEXEC)
    defer { close(file) }
    _ = unsafe read(file, buffer.baseAddress, buffer.count - 1)
    #else
    unsafe pthread_getname_np(pthread_self(), buffer.baseAddress!, buffer.count)
    #endif
    return unsafe String(cString: buffer.baseAddress!).split(separator: "\n").joined()
  }
  var mask = sigset_t()
  unsafe pthread_sigmask(SIG_BLOCK, nil, &mask)
  return (name, unsafe sigismember(&mask, SIGTERM) == 1)
}
