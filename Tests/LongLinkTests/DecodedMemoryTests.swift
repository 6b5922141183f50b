// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkProtobufC
import LongLinkServer
import LongLinkTesting
import Synchronization
import Testing

/// What typed bodies take once they are decoded: it counts in a server's memory.
@Suite struct DecodedMemoryTests {
  private static let keep = RPCMethod<ProtobufListValue, EmptyBody>(9)
  private static let each = RPCMethod<Streamed<ProtobufListValue>, EmptyBody>(10)

  /// The encoding of a list of empty values: two bytes each, and in memory about seventy.
  private static func list(_ count: Int) -> [UInt8] {
    (0..<count).flatMap { _ in [0x0a, 0] as [UInt8] }
  }

  /// A server whose handler keeps its request until the latch opens.
  private static func serve(
    _ stage: Stage, _ calls: Tally<Int>, _ end: Latch, on placement: HandlerPlacement,
    memoryLimit: Int = 26_000_000
  ) async throws -> LongLinkServer {
    try await stage.serve { server in
      server.routeBasics()
      server.route(keep, on: placement) { list, _ in
        calls.add(list.values.count)
        await end.wait()
        return EmptyBody()
      }
    } configure: {
      $0.limits.maxBody = 1_000_000
      $0.limits.maxRequestBytes = 4_000_000
      $0.limits.memoryLimit = memoryLimit
    }
  }

  @Test(arguments: TestEnvironment.allCases, [false, true])
  func `decoded requests count until their handlers return, and there is room for few`(
    _ environment: TestEnvironment, onPool: Bool
  ) async throws {
    // In a simulation, a task on the pool would not be replayed.
    if onPool, environment == .simulated { return }
    try await Stage.run(environment) { stage in
      let (calls, end) = (Tally<Int>(), Latch())
      let server = try await Self.serve(
        stage, calls, end, on: onPool ? .globalPool : .connectionLoop)
      let client = try stage.client(of: server)
      let options = RequestOptions(retry: .never)
      // One after the other: those that decode at the same time may all be refused.
      var tasks: [RequestTask<[UInt8]>] = []
      for count in 1...5 {
        tasks.append(client.submit(9, Self.list(100_000), options: options))
        await calls.reached(min(count, 2))
      }
      var refused: [LongLinkError] = []
      for _ in 0..<3 {
        refused.append(
          try await failure { try await client.request(9, Self.list(100_000), options: options) })
      }
      #expect(refused.allSatisfy { $0.response == .overloaded && $0.delivery == .refused })
      #expect(
        refused.allSatisfy { "\($0)".contains("limits.memoryLimit of 26000000 bytes") },
        "\(refused)")
      let held = await server.counters().bytesHeld
      #expect(held > 14_000_000 && held < 17_500_000)
      end.open()
      for task in tasks { _ = try? await task.value }
      #expect(calls.elements.count == 2)
      let counters = await server.counters()
      #expect(counters.connections.refusedForMemory == 6)
      #expect(counters.endings.isEmpty)
      #expect(counters.bytesHeld < 1_000_000)
      _ = try await client.request(9, Self.list(100_000))
    }
  }

  @Test func `what an abandoned handler holds counts until it returns`() async throws {
    try await Stage.simulate { stage, _ in
      let (calls, end) = (Tally<Int>(), Latch())
      let server = try await Self.serve(stage, calls, end, on: .connectionLoop)
      let client = try stage.client(of: server)
      let task = client.submit(9, Self.list(100_000), options: RequestOptions())
      await calls.reached(1)
      await client.close()
      _ = try? await task.value
      try await stage.until { await server.counters().openConnections == 0 }
      #expect(await server.counters().bytesHeld > 7_000_000)
      end.open()
      try await stage.until { await server.counters().bytesHeld == 0 }
    }
  }

  @Test func `a small request is decoded though memory is exhausted, and a large one is not`()
    async throws
  {
    try await Stage.simulate { stage, _ in
      let (calls, end) = (Tally<Int>(), Latch())
      let server = try await Self.serve(
        stage, calls, end, on: .connectionLoop, memoryLimit: 12_500_000)
      let client = try stage.client(of: server)
      let options = RequestOptions(retry: .never)
      let large = client.submit(9, Self.list(100_000), options: options)
      await calls.reached(1)
      let error = try await failure {
        try await client.request(9, Self.list(10_000), options: options)
      }
      #expect(error.response == .overloaded)
      let small = client.submit(9, Self.list(500), options: options)
      await calls.reached(2)
      end.open()
      _ = try await (large.value, small.value)
    }
  }

  // MARK: The limit of a type

  private struct Frugal: BodyDecodable, BodyEncodable, Sendable {
    static var decodingMemoryLimit: Int { 10_000 }
    init(decoding body: RawSpan) throws(BodyError) {}
    var encodedByteCount: Int { 0 }
    func encode(into output: inout OutputRawSpan) {}
  }

  @Test func `a request or response beyond the limit of its type is named as such`() async throws {
    try await Stage.serving { server in
      server.routeBasics()
      server.route(RPCMethod<Frugal, EmptyBody>(9)) { _, _ in EmptyBody() }
    } _: { _, server, client in
      _ = try await client.request(9, [UInt8](repeating: 0, count: 1_250))
      let error = try await failure {
        try await client.request(9, [UInt8](repeating: 0, count: 1_251))
      }
      #expect(error.response == .tooLarge && error.delivery == .refused)
      let text = "decoding takes more than 10000 bytes (Frugal.decodingMemoryLimit)"
      #expect("\(error)".contains(text), "\(error)")
      #expect(await server.counters().connections.undecodable == 1)
      let response = try await failure {
        try await client.request(
          RPCMethod<[UInt8], Frugal>(.echo), [UInt8](repeating: 0, count: 1_251))
      }
      #expect(response.code == .decodingFailed && response.detail.contains(text), "\(response)")
    }
  }

  // MARK: Items and pushes

  @Test func `an item counts until the next one is read`() async throws {
    let (calls, ends) = (Tally<Int>(), [Latch(), Latch(), Latch()])
    try await Stage.serving { server in
      server.routeStream(Self.each) { _, lists in
        var number = 0
        for try await list in lists {
          calls.add(list.values.count)
          await ends[number].wait()
          number += 1
        }
        return EmptyBody()
      }
    } server: {
      $0.limits.maxBody = 1_000_000
      $0.limits.memoryLimit = 20_000_000
    } _: { stage, server, client in
      let error = try await failure {
        try await client.sendItems(Self.each.type, EmptyBody()) { writer in
          for (index, count) in [100_000, 10, 300_000].enumerated() {
            try await writer.write(Self.list(count))
            if index == 2 { break }
            await calls.reached(index + 1)
            let held = await server.counters().bytesHeld
            #expect(index == 0 ? held > 7_000_000 : held < 2_000_000, "\(index): \(held)")
            ends[index].open()
          }
        }
      }
      #expect(calls.elements == [100_000, 10])
      #expect(error.response == .overloaded, "\(error)")
      #expect(await server.counters().connections.refusedForMemory == 1)
      try await stage.until { await server.counters().bytesHeld < 100_000 }
    }
  }

  private struct Lists: PushMessage {
    static var pushType: MessageType { 41 }
    let list: ProtobufListValue
    init(decoding body: RawSpan) throws(BodyError) { list = try ProtobufListValue(decoding: body) }
    init(decoding body: RawSpan, charging memory: inout DecodingMemory) throws(BodyError) {
      list = try ProtobufListValue(decoding: body, charging: &memory)
    }
    var encodedByteCount: Int { get throws(BodyError) { try list.encodedByteCount } }
    func encode(into output: inout OutputRawSpan) throws(BodyError) {
      try list.encode(into: &output)
    }
  }

  /// A body whose decoder leaves another memory in the place of the one that it was given.
  private struct Swapping: BodyDecodable, Sendable {
    init(decoding body: RawSpan) throws(BodyError) {}
    init(decoding body: RawSpan, charging memory: inout DecodingMemory) throws(BodyError) {
      try memory.take(100_000)
      var other = DecodingMemory(for: Self.self)
      try other.take(50_000)
      swap(&memory, &other)
    }
  }

  @Test func `a decoder that swaps its memory gives back what it has taken, and no more`()
    async throws
  {
    try await Stage.serving { server in
      server.routeBasics()
      server.route(RPCMethod<Swapping, EmptyBody>(9)) { _, _ in EmptyBody() }
    } _: { _, server, client in
      _ = try await client.request(.echo, [1])
      let held = await server.counters().bytesHeld
      for _ in 0..<3 { _ = try await client.request(9, [1]) }
      #expect(await server.counters().bytesHeld == held)
    }
  }

  /// A body whose decoder cannot be asked what it takes.
  private struct Estimated: BodyDecodable, Sendable {
    init(decoding body: RawSpan) throws(BodyError) {}
  }

  @Test(arguments: [ServerConfiguration(listen: []).limits.memoryLimit, .max])
  func `one body that only has an estimate may be as large as any`(
    _ memoryLimit: Int
  ) async throws {
    try await Stage.serving { server in
      server.routeBasics()
      server.route(RPCMethod<Estimated, EmptyBody>(9)) { _, _ in EmptyBody() }
    } server: {
      $0.limits.memoryLimit = memoryLimit
    } _: { _, _, client in
      for count in [1_000, 6_000_000, 16_000_000] {
        _ = try await client.request(9, [UInt8](repeating: 0, count: count))
      }
    }
  }

  // It is held beside what it becomes, so that both have to fit.
  @Test(arguments: [(8_000_000, 4_100_000), (9_000_000, 4_725_000)])
  func `a body for which there can never be memory is too large`(
    _ memoryLimit: Int, _ most: Int
  ) async throws {
    try await Stage.serving { server in
      server.routeBasics()
      server.route(RPCMethod<Estimated, EmptyBody>(9)) { _, _ in EmptyBody() }
    } server: {
      $0.limits.maxBody = 1_000_000
      $0.limits.memoryLimit = memoryLimit
    } _: { _, server, client in
      let error = try await failure {
        try await client.request(9, [UInt8](repeating: 0, count: 900_000))
      }
      #expect(error.response == .tooLarge && error.delivery == .refused, "\(error)")
      #expect("\(error)".contains("more than \(most) bytes (by the server's limits.memoryLimit)"))
    }
  }

  @Test func `a push for which there is no memory is an error, and counts until it is handled`()
    async throws
  {
    let (results, calls, end) = (Tally<String>(), Tally<Int>(), Latch())
    try await Stage.serving { server in
      server.routeBasics()
      server.route(Self.keep) { list, _ in
        calls.add(list.values.count)
        await end.wait()
        return EmptyBody()
      }
      server.onPush(Lists.self) { result, _ in
        switch result {
        case .success(let lists): results.add("\(lists.list.values.count)")
        case .failure(let error): results.add("\(error.code)")
        }
      }
    } server: {
      $0.limits.maxBody = 1_000_000
      $0.limits.memoryLimit = 20_000_000
    } _: { stage, server, client in
      let request = client.submit(9, Self.list(100_000), options: RequestOptions())
      await calls.reached(1)
      for count in [1_000, 100_000, 1_000] { try await client.push(41, Self.list(count)) }
      await results.reached(3)
      #expect(results.elements == ["1000", "overloaded", "1000"])
      end.open()
      _ = try await request.value
      try await stage.until { await server.counters().bytesHeld < 100_000 }
    }
  }
}
