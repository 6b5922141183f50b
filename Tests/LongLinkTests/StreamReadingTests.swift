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

  @Test(arguments: [false, true])
  func `a read that timed out is not the end of the items`(isElsewhere: Bool) async throws {
    try await Stage.simulate { stage, simulation in
      let placement: HandlerPlacement =
        isElsewhere ? .executor(stage.clientLoop) : .connectionLoop
      let server = try await stage.serve { server in
        server.routeStream(10, .requestItems, on: placement, itemTimeout: .seconds(1)) {
          _, items, _ in
          var iterator = items.makeAsyncIterator()
          var read: [UInt8] = []
          var isAtEnd = false
          while !isAtEnd {
            switch await Self.next(of: &iterator) {
            case .success(let item?): read += item
            case .success(nil): isAtEnd = true
            case .failure(let error):
              #expect(error.code == .deadlineExceeded)
              read.append(0)
            }
          }
          return read
        }
      }
      let client = try stage.client(of: server)
      let read = try await client.sendItems(10, []) { writer in
        try await writer.write([1])
        try await simulation.sleep(for: .milliseconds(2_500))
        try await writer.write([2])
      }
      #expect(read == [1, 0, 0, 2])
    }
  }

  @Test func `a stream that is cancelled completes once, also if nobody asks for the next item`()
    async throws
  {
    try await Stage.serving { server in
      server.routeStream(10, .responseItems) { request, _, writer in
        for number: UInt8 in 1...3 { try await writer.write([number]) }
        try await request.clock.sleep(for: .seconds(1_000_000))
        return []
      }
    } _: { stage, _, client in
      let asks = Tally<@Sendable () -> Void>()
      let ends = Tally<LongLinkError.Code?>()
      let handle = client.stream(
        10, [], on: .connectionLoop, onItem: { _, next in asks.add(next) },
        completion: { result in
          if case .failure(let error) = result { ends.add(error.code) } else { ends.add(nil) }
        })
      await asks.reached(1)
      try await stage.clientLoop.sleep(for: .seconds(1))
      handle.cancel()
      try await stage.clientLoop.sleep(for: .seconds(1))
      #expect(ends.elements == [.cancelled])
      asks.elements[0]()
      try await stage.clientLoop.sleep(for: .seconds(1))
      #expect(ends.elements.count == 1 && asks.count == 1)
    }
  }

  /// How a stream of callbacks ends whose next item nobody asks for.
  enum Ending: CaseIterable {
    case rejected
    case lost
    case answered
  }

  @Test(arguments: Ending.allCases, [0, 2])
  func `the completion of callbacks waits for the items before it, and for nothing else`(
    ending: Ending, waiting: Int
  ) async throws {
    try await Stage.simulate { stage, simulation in
      let server = try await stage.serve { server in
        server.routeStream(10, .responseItems) { request, _, writer in
          for _ in 0...waiting { try await writer.write([1]) }
          if ending == .lost { try await request.clock.sleep(for: .seconds(1_000_000)) }
          if ending == .rejected { throw Rejection(1_234) }
          return []
        }
      }
      let client = try stage.client(of: server)
      let asks = Tally<@Sendable () -> Void>()
      let ends = Tally<LongLinkError.Code?>()
      client.stream(
        10, [], on: .connectionLoop, onItem: { _, next in asks.add(next) },
        completion: { result in
          if case .failure(let error) = result { ends.add(error.code) } else { ends.add(nil) }
        })
      await asks.reached(1)
      try await simulation.sleep(for: .seconds(1))
      if ending == .lost { simulation.network.loseAllLinks() }
      try await simulation.sleep(for: .seconds(1))
      // The loss alone needs no call that asks, if no item is left.
      #expect(ends.count == (ending == .lost && waiting == 0 ? 1 : 0))
      for number in 0...waiting {
        #expect(asks.count == number + 1)
        asks.elements[number]()
        try await simulation.sleep(for: .seconds(1))
      }
      let expected: LongLinkError.Code? =
        switch ending {
        case .rejected: .rejected
        case .lost: .connectionLost
        case .answered: nil
        }
      #expect(ends.elements == [expected] && asks.count == waiting + 1)
    }
  }

  /// What a call of an iterator returns or throws.
  private static func next<Iterator: AsyncIteratorProtocol>(
    of iterator: inout Iterator
  ) async -> Result<Iterator.Element?, LongLinkError> where Iterator.Failure == LongLinkError {
    do throws(LongLinkError) {
      return .success(try await iterator.next(isolation: nil))
    } catch {
      return .failure(error)
    }
  }

  /// The errors of the first three calls that throw; fewer if there is an end.
  private static func failures<Iterator: AsyncIteratorProtocol>(
    _ iterator: Iterator
  ) async -> [LongLinkError] where Iterator.Failure == LongLinkError {
    var iterator = iterator
    var errors: [LongLinkError] = []
    var isAtEnd = false
    while errors.count < 3, !isAtEnd {
      switch await next(of: &iterator) {
      case .success(let item): isAtEnd = item == nil
      case .failure(let error): errors.append(error)
      }
    }
    return errors
  }

  @Test func `a stream that was cut never looks whole`() async throws {
    try await Stage.serving { server in
      server.routeStream(10, .responseItems) { _, _, writer in
        try await writer.write([255])
        throw Rejection(1_234)
      }
    } _: { _, _, client in
      let method = RPCMethod<Nothing, Streamed<Nothing>>(10)
      let ofBytes = await Self.failures(client.stream(10, []).makeAsyncIterator())
      let ofMessages = await Self.failures(client.stream(method, Nothing()).makeAsyncIterator())
      #expect(ofBytes.map(\.response) == [1_234, 1_234, 1_234])
      #expect(ofMessages.map(\.code) == [.decodingFailed, .decodingFailed, .decodingFailed])
    }
  }
}

/// A message without bytes.
private struct Nothing: BodyEncodable & BodyDecodable, Hashable, Sendable {
  var encodedByteCount: Int { 0 }

  init() {}

  func encode(into output: inout OutputRawSpan) {}

  init(decoding body: RawSpan) throws(BodyError) {
    guard body.byteCount == 0 else { throw BodyError(.malformed) }
  }
}
