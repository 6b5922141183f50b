// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// Writers that wait for the end of their exchange.
@Suite struct StreamEndTests {
  @Test func `a writer without items learns of an early response`() async throws {
    try await Stage.pair { _, _, client in
      let response = try await client.sendItems(14, []) { writer in
        try await writer.write([UInt8](repeating: 1, count: 10_000))
        await writer.waitForEnd()
        // It does not wait for what has been.
        await writer.waitForEnd()
      }
      #expect(response == Array("enough".utf8))
    }
  }

  @Test func `a wait for the end of an exchange ends with its task`() async throws {
    try await Stage.pair { _, _, client in
      let response = try await client.sendItems(11, []) { writer in
        await withTaskGroup(of: Void.self) { group in
          for _ in 0..<3 {
            group.addTask(executorPreference: client.loop) { await writer.waitForEnd() }
          }
          await Task.yield()
          group.cancelAll()
        }
        try await writer.write([1])
      }
      #expect(response == Array("1".utf8))
    }
  }

  @Test func `an early error ends the wait, and is thrown`() async throws {
    try await Stage.serving { server in
      server.routeStream(15, .requestItems) { _, _, _ in throw Rejection(1_234, "no") }
    } _: { _, _, client in
      let error = await #expect(throws: LongLinkError.self) {
        try await client.sendItems(15, []) { await $0.waitForEnd() }
      }
      #expect(error?.code == .rejected && error?.response == 1_234)
    }
  }

  @Test func `a responder learns of the end of its exchange`() async throws {
    let (stream, ended) = AsyncStream.makeStream(of: Bool.self)
    try await Stage.serving { server in
      server.routeStream(16, .responseItems) { _, _, writer in
        try await writer.write([1])
        await writer.waitForEnd()
        ended.yield(Task.isCancelled)
        return []
      }
    } _: { _, _, client in
      for try await _ in client.stream(16, []) { break }
      // The cancel of its request cancels its task.
      #expect(await stream.first { _ in true } == true)
    }
  }

  @Test func `a responder that finishes its items sends no end, and can write no more`()
    async throws
  {
    try await Stage.serving { server in
      server.routeBasics()
      server.routeStream(17, .responseItems) { _, _, writer in
        try await writer.write([1])
        writer.finish()
        let error = try await failure { try await writer.write([2]) }
        #expect(error.code == .streamEnded)
        return [3]
      }
    } _: { _, _, client in
      let stream = client.stream(17, [])
      var items: [[UInt8]] = []
      for try await item in stream { items.append(item) }
      #expect(items == [[1]] && stream.response == [3])
      #expect(await client.counters().violations == [:])
    }
  }

  @Test func `what was written together precedes an error in band`() async throws {
    try await Stage.simulate { stage, _ in
      // Off the loop of the connection, where several items are written at once.
      let server = try await stage.serve { server in
        server.routeStream(18, .responseItems, on: .executor(stage.clientLoop)) { _, _, writer in
          let sizes = [1, 200_000]
          try await writer.write(contentsOf: sizes.map { [UInt8](repeating: 1, count: $0) })
          throw Rejection(1_234)
        }
      }
      let client = try stage.client(of: server)
      var sizes: [Int] = []
      var iterator = client.stream(18, []).makeAsyncIterator()
      let error = try await failure {
        while let item = try await iterator.next() { sizes.append(item.count) }
      }
      #expect(sizes == [1, 200_000] && error.response == 1_234)
    }
  }
}
