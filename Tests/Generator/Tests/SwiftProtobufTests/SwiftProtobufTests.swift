// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkProtobuf
import LongLinkServer
import LongLinkTesting
import ParcelsOfSwift
import SwiftProtobuf
import Testing

struct Depot: ParcelsService {
  func send(_ request: Parcel_SendRequest, context: InboundRequest) async throws
    -> Parcel_SendReply
  {
    try await context.peer.push(Parcel_Moved.with { $0.number = request.parcel.number })
    return .with { $0.number = request.parcel.number + 1 }
  }

  func find(_ request: Parcel_FindRequest, context: InboundRequest) async throws
    -> Parcel_Parcel
  {
    .with { $0.labels = ["number": "\(request.number)"] }
  }

  func clear(_ request: Google_Protobuf_Empty, context: InboundRequest) async throws
    -> Google_Protobuf_Empty
  {
    throw Rejection(1_000)
  }

  func track(
    _ request: Parcel_FindRequest, writer: ItemWriter<Parcel_Moved>, context: InboundRequest
  ) async throws {
    for place in 0..<3 {
      try await writer.write(.with { $0.number = request.number + UInt64(place) })
    }
  }

  func sendAll(
    _ items: Items<Parcel_SendRequest>, context: InboundRequest
  ) async throws -> Parcel_SendReply {
    var sum: UInt64 = 0
    for try await request in items { sum += request.parcel.number }
    return .with { $0.number = sum }
  }

  func unwrap(
    _ items: Items<Parcel_Parcel>, writer: ItemWriter<Parcel_Parcel>,
    context: InboundRequest
  ) async throws {
    for try await parcel in items { try await writer.write(parcel.wrapping) }
  }
}

@Suite struct SwiftProtobufTests {
  @Test func `services with SwiftProtobuf's messages can be called`() async throws {
    let simulation = Simulation(seed: 1)
    try await simulation.run {
      let server = try LongLinkServer(listen: .host("10.0.0.1", port: 0), on: [simulation.mainLoop])
      server.register(parcels: Depot())
      try await server.start()
      let client = try LongLinkClient(
        to: server.endpoint, on: simulation.mainLoop)
      let parcels = ParcelsClient(client)
      var moves = client.pushes(of: Parcel_Moved.self).makeAsyncIterator()
      let sent = try await parcels.send(.with { $0.parcel.number = 7 })
      #expect(sent.number == 8)
      #expect(try await moves.next()?.number == 7)
      #expect(try await parcels.find(.with { $0.number = 3 }).labels == ["number": "3"])
      let error = await #expect(throws: LongLinkError.self) { try await parcels.clear(.init()) }
      #expect(error?.response == 1_000)
      var numbers: [UInt64] = []
      for try await moved in parcels.track(.with { $0.number = 5 }) { numbers.append(moved.number) }
      #expect(numbers == [5, 6, 7])
      let sum = try await parcels.sendAll { writer in
        for number: UInt64 in [1, 2] { try await writer.write(.with { $0.parcel.number = number }) }
      }
      #expect(sum.number == 3)
      try await parcels.unwrap { items, writer in
        var iterator = items.makeAsyncIterator()
        try await writer.write(.with { $0.wrapping.number = 4 })
        #expect(try await iterator.next()?.number == 4)
      }
      let malformed = await #expect(throws: LongLinkError.self) {
        try await client.exchange(ParcelsMethods.unwrap.type, []) { items, writer in
          try await writer.write([0xff])
          for try await _ in items {}
        }
      }
      #expect(malformed?.response == .malformed && malformed?.itemsReceived == 0)
      await client.close()
      await server.shutDown(within: .zero)
    }
  }

  @Test func `a simulated server is scripted by method`() async throws {
    let simulation = Simulation(seed: 1)
    try await simulation.run {
      let server = try await SimulatedParcelsServer.start(on: simulation.mainLoop)
      server.onSend { request in .with { $0.number = UInt64(request.listeners.count) } }
      let client = try LongLinkClient(
        to: server.endpoint, on: simulation.mainLoop)
      let sent = try await ParcelsClient(client).send(.with { $0.listeners = ["a", "b"] })
      #expect(sent.number == 2)
      #expect(try server.sendRequests().map(\.listeners) == [["a", "b"]])
      await client.close()
      await server.stop()
    }
  }

  @Test func `a body that cannot be decoded gives an error with the reason`() {
    #expect(code([0x0a, 0x05]) == .truncated)
    #expect(code([0x12, 0x01, 0xff]) == .invalidUTF8)
    #expect(code([0x00]) == .malformed)
    var deep: [UInt8] = []
    for _ in 0..<101 { deep = [0x6a] + length(deep.count) + deep }
    #expect(failure(Parcel_Parcel.self, deep)?.code == .tooDeep)
  }

  private func code(_ body: [UInt8]) -> BodyError.Code? {
    failure(Parcel_SendRequest.self, body)?.code
  }

  private func failure<Message: BodyDecodable>(
    _ type: Message.Type, _ body: [UInt8]
  ) -> BodyError? {
    do throws(BodyError) {
      // The elements are bytes: there is no padding between them.
      _ = try unsafe Message(decoding: body.span.bytes)
      return nil
    } catch {
      return error
    }
  }

  private func length(_ count: Int) -> [UInt8] {
    count < 128 ? [UInt8(count)] : [UInt8(count & 127 | 128), UInt8(count >> 7)]
  }
}
