// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCalls
import LongLinkTesting
import Testing

/// A list that comes in parts.
@Suite struct PagingTests {
  private let method = RawMethod.raw(1)

  /// A list of the numbers below a count: a request is a position and a size.
  private func serve(_ server: SimulatedServer, count: Int, after delay: Duration = .zero) {
    server.on(1) { request in
      let start = Int(request.body[0])
      let end = min(count, start + Int(request.body[1]))
      return .delay(delay, then: .reply((start..<end).map { UInt8($0) }))
    }
  }

  /// The list by the position of the next element.
  private func list(
    _ api: CallClient, size: Int = 10, policy: CallPolicy = CallPolicy()
  ) -> PagedList<UInt8, Int> {
    api.pages(from: 0, size: size) { [method] position, size in
      method([UInt8(position), UInt8(size)], policy: policy)
        .map { (bytes) throws(BodyError) in
          Page(bytes, next: bytes.count < size ? nil : position + size)
        }
    }
  }

  private func positions(_ server: SimulatedServer) -> [UInt8] {
    server.requests(of: 1).map { $0.body[0] }
  }

  @Test func `all elements come once, and the end is found`() async throws {
    try await Scene.run { scene in
      serve(scene.server, count: 35)
      let list = list(scene.api)
      var elements: [UInt8] = []
      for try await element in list { elements.append(element) }
      #expect(elements == Array(0..<35))
      #expect(positions(scene.server) == [0, 10, 20, 30])
      #expect(await list.hasMore == false)
      #expect(try await list.loadMore() == nil)
      #expect(positions(scene.server).count == 4)
    }
  }

  @Test func `numbered pages end with one that is not full`() async throws {
    try await Scene.run { scene in
      scene.server.on(1) { .reply([UInt8](repeating: $0.body[0], count: $0.body[0] < 3 ? 4 : 1)) }
      let list = scene.api.pages(from: 1, size: 4) { [method] position, size in
        method([UInt8(position)]).map { (bytes) throws(BodyError) in
          Page(bytes, number: position, size: size)
        }
      }
      var elements: [UInt8] = []
      for try await element in list { elements.append(element) }
      #expect(elements == [1, 1, 1, 1, 2, 2, 2, 2, 3])
    }
  }

  @Test func `concurrent iterations and loads share each page`() async throws {
    try await Scene.run { scene async throws in
      serve(scene.server, count: 35, after: .milliseconds(100))
      let list = list(scene.api)
      let readers = (0..<5).map { number in
        scene.spawn {
          try await scene.sleep(.milliseconds(number * 30))
          var elements: [UInt8] = []
          for try await element in list { elements.append(element) }
          return elements
        }
      }
      let loaders = (0..<3).map { _ in scene.spawn { try await list.loadMore()?.elements } }
      for loader in loaders { #expect(try await loader.value == Array(0..<10)) }
      for reader in readers { #expect(try await reader.value == Array(0..<35)) }
      #expect(positions(scene.server) == [0, 10, 20, 30])
      #expect(await list.pageCount == 4)
    }
  }

  @Test func `a page that failed is requested again by the next call`() async throws {
    try await Scene.run { scene in
      scene.server.on(1, [.reply([1, 2]), .reply(code: 500), .reply([3])])
      let list = list(scene.api, size: 2)
      var iterator = list.makeAsyncIterator()
      #expect(try await iterator.next() == 1)
      #expect(try await iterator.next() == 2)
      let error = try await failure { try await iterator.next() }
      #expect(error.code == CallErrorCode(.failed))
      #expect(try await iterator.next() == 3)
      #expect(try await iterator.next() == nil)
      #expect(positions(scene.server) == [0, 2, 2])
    }
  }

  @Test func `a refresh begins anew, and the old list stays until the new one has arrived`()
    async throws
  {
    try await Scene.run { scene in
      serve(scene.server, count: 15)
      let list = list(scene.api)
      var old = list.makeAsyncIterator()
      #expect(try await old.next() == 0)
      try await list.loadMore()
      #expect(await list.elements.count == 15)
      scene.server.on(1, .reply([77]), after: .seconds(1))
      let refreshes = (0..<2).map { _ in scene.spawn { try await list.refresh()?.elements } }
      try await scene.sleep(.milliseconds(500))
      #expect(await list.elements.count == 15)
      for refresh in refreshes { #expect(try await refresh.value == [77]) }
      #expect(await list.elements == [77])
      #expect(await list.hasMore == false)
      #expect(positions(scene.server) == [0, 10, 0])
      // What it holds it may give; then it must not go on as if nothing had happened.
      for number: UInt8 in 1..<10 { #expect(try await old.next() == number) }
      #expect(try await failure { try await old.next() }.code == .cancelled)
      var elements: [UInt8] = []
      for try await element in list { elements.append(element) }
      #expect(elements == [77])
    }
  }

  @Test func `a refresh that fails changes nothing`() async throws {
    try await Scene.run { scene in
      serve(scene.server, count: 15)
      let list = list(scene.api)
      var iterator = list.makeAsyncIterator()
      _ = try await iterator.next()
      scene.server.on(1, .reply(code: 500))
      _ = try await failure { try await list.refresh() }
      serve(scene.server, count: 15)
      for number: UInt8 in 1..<15 { #expect(try await iterator.next() == number) }
      #expect(try await iterator.next() == nil)
    }
  }

  @Test func `a refresh ends a load that is in flight`() async throws {
    try await Scene.run { scene in
      serve(scene.server, count: 35)
      let list = list(scene.api)
      try await list.loadMore()
      serve(scene.server, count: 35, after: .seconds(5))
      let loading = scene.spawn { try await list.loadMore() }
      try await scene.server.waitForRequest(of: 1, count: 2)
      serve(scene.server, count: 35)
      #expect(try await list.refresh()?.elements == Array(0..<10))
      #expect(try await failure { try await loading.value }.code == .cancelled)
      #expect(await list.elements == Array(0..<10))
    }
  }

  @Test func `a refresh asks the server, whatever the cache holds`() async throws {
    try await Scene.run { scene in
      serve(scene.server, count: 15)
      let list = list(scene.api, policy: CallPolicy(cache: CachePolicy()))
      for try await _ in list {}
      try await list.refresh()
      for try await _ in list {}
      #expect(positions(scene.server) == [0, 10, 0, 10])
    }
  }

  @Test func `a page without a waiting caller is cancelled, and can be loaded later`() async throws
  {
    try await Scene.run { scene in
      scene.server.on(1, [.never, .reply([1])])
      let list = list(scene.api, policy: CallPolicy(RequestOptions(cancelsAtPeer: true)))
      let loaders = (0..<2).map { _ in scene.spawn { try await list.loadMore() } }
      try await scene.server.waitForRequest(of: 1)
      loaders[0].cancel()
      #expect(try await failure { try await loaders[0].value }.code == .cancelled)
      try await scene.sleep(.seconds(1))
      #expect(scene.server.cancels.isEmpty)
      loaders[1].cancel()
      #expect(try await failure { try await loaders[1].value }.code == .cancelled)
      try await scene.until { scene.server.cancels.count == 1 }
      #expect(try await list.loadMore()?.elements == [1])
    }
  }

  @Test(arguments: 0..<100)
  func `concurrent cancels, refreshes and loads leave no caller waiting`(_ seed: UInt64)
    async throws
  {
    try await Scene.run(seed: seed) { scene in
      serve(scene.server, count: 100, after: .milliseconds(5))
      let list = list(scene.api)
      let simulation = scene.simulation
      let tasks = (0..<30).map { _ in
        let start = Duration.microseconds(simulation.random(in: 0...40_000 as ClosedRange<Int>))
        let refreshes = simulation.random(in: 0...3) == 0
        return scene.spawn {
          try await scene.sleep(start)
          _ = try await refreshes ? list.refresh() : list.loadMore()
        }
      }
      for task in tasks where simulation.random(in: 0...2) == 0 {
        try await scene.sleep(.microseconds(simulation.random(in: 0...3_000 as ClosedRange<Int>)))
        task.cancel()
      }
      for task in tasks { _ = await task.result }
      let elements = await list.elements
      #expect(elements == Array(0..<UInt8(elements.count)))
    }
  }

  @Test func `a page token that was used before is reported as an error`() async throws {
    try await Scene.run { scene in
      scene.server.on(1) { .reply([$0.body[0] == 0 ? 1 : 0]) }
      let list = scene.api.pages(from: 0) { [method] position, _ in
        method([UInt8(position)]).map { (bytes) throws(BodyError) in
          Page(bytes, next: Int(bytes[0]))
        }
      }
      try await list.loadMore()
      #expect(try await failure { try await list.loadMore() }.code == .decodingFailed)
      #expect(await list.elements == [1])
    }
  }

  @Test func `a server that always names another page, and has no elements, is an error`()
    async throws
  {
    try await Scene.run { scene in
      scene.server.on(1) { _ in .reply([]) }
      let list = scene.api.pages(from: 0) { [method] position, _ in
        method([]).map { (bytes) throws(BodyError) in
          Page(bytes, next: position + 1)
        }
      }
      var iterator = list.makeAsyncIterator()
      for round in 1...2 {
        do {
          _ = try await iterator.next()
          Issue.record("there is no element")
        } catch let error as CallError {
          #expect(error.code == .decodingFailed)
        }
        #expect(scene.server.requests(of: 1).count == 101 * round)
      }
    }
  }

  @Test func `empty pages before a refresh do not count after it`() async throws {
    try await Scene.run { scene in
      scene.server.on(1) { _ in .reply([]) }
      let list = scene.api.pages(from: 0) { [method] position, _ in
        method([]).map { (bytes) throws(BodyError) in
          Page(bytes, next: position + 1)
        }
      }
      for _ in 0..<100 { try await list.loadMore() }
      try await list.refresh()
      try await list.loadMore()
      #expect(scene.server.requests(of: 1).count == 102)
    }
  }
}
