// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// Readers that stop and go on.
@Suite struct StreamReadingTests {
  @Test(arguments: [false, true])
  func `an iterator goes on where the one before has stopped`(isElsewhere: Bool) async throws {
    try await Stage.simulate { stage, _ in
      let placement: HandlerPlacement =
        isElsewhere ? .executor(stage.clientLoop) : .connectionLoop
      let server = try await stage.serve { server in
        server.routeStream(10, .requestItems, on: placement) { request, items, _ in
          // Then all items are there.
          try await request.clock.sleep(for: .seconds(1))
          var read: [UInt8] = []
          for try await item in items {
            read += item
            if item == [1] { break }
          }
          var iterator = items.makeAsyncIterator()
          let copy = iterator
          for _ in 0..<3 { read += try await iterator.next() ?? [] }
          iterator = copy
          while let item = try await iterator.next() { read += item }
          return read
        }
      }
      let client = try stage.client(of: server)
      let read = try await client.sendItems(10, []) { writer in
        for number in 1...10 { try await writer.write([UInt8(number)]) }
      }
      #expect(read == Array(1...10))
    }
  }
}
