// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkProtobufC
import LongLinkServer
import LongLinkTesting
import Parcels
import Synchronization
import Testing

/// Keeps what it is sent, and pushes where it went.
final class Depot: ParcelsService {
  private let parcels = Mutex<[UInt64: Parcel]>([:])

  func send(_ request: SendRequest, context: InboundRequest) async throws -> SendReply {
    guard var parcel = request.parcel else { throw Rejection(1_000, "nothing is sent") }
    let number = parcels.withLock { parcels in
      let number = UInt64(parcels.count + 1)
      parcel.number = number
      parcels[number] = parcel
      return number
    }
    try await context.peer.push(Moved(number: number, place: parcel.destination))
    return SendReply(number: number)
  }

  func find(_ request: FindRequest, context: InboundRequest) async throws -> Parcel {
    guard let parcel = parcels.withLock({ $0[request.number] }) else {
      throw Rejection(1_001, "there is no such parcel")
    }
    return parcel
  }

  func clear(_ request: ProtobufEmpty, context: InboundRequest) async throws -> ProtobufEmpty {
    parcels.withLock { $0 = [:] }
    return ProtobufEmpty()
  }

  func track(
    _ request: FindRequest, writer: ItemWriter<Moved>, context: InboundRequest
  ) async throws {
    for town in ["Wien", "Graz"] {
      try await writer.write(Moved(number: request.number, place: Place(town: town)))
    }
    if request.number == 9 { throw Rejection(1_003, "it is lost") }
  }

  func sendAll(
    _ items: Items<SendRequest>, context: InboundRequest
  ) async throws -> SendReply {
    var reply = SendReply()
    for try await request in items { reply = try await send(request, context: context) }
    return reply
  }

  func unwrap(
    _ items: Items<Parcel>, writer: ItemWriter<Parcel>, context: InboundRequest
  ) async throws {
    for try await parcel in items { try await writer.write(parcel.wrapping ?? Parcel()) }
  }
}

let sample = Parcel(
  destination: Place(street: "Hauptstraße 1", town: "Wien", latitude: 48.2, longitude: -0.0),
  urgency: .unrecognized(99),
  parts: [
    Parcel.Part(name: "box", grams: 0, parts: [Parcel.Part(name: "nail")]), Parcel.Part(),
  ],
  labels: ["b": "2", "a": "1", "": ""],
  shelves: [-1: Parcel.Part(name: "low"), 0: Parcel.Part()],
  payment: .payer(Place(town: "Graz")),
  sent: ProtobufTimestamp(seconds: 1_700_000_000, nanos: 5),
  allowance: ProtobufDuration(.milliseconds(-1_500)),
  note: "",
  wrapping: Parcel(note: "inside", wrapping: Parcel(number: 3)))

@Suite struct ParcelTests {
  /// A client and a server with a depot, in a simulation.
  private func run(
    _ body: @escaping @Sendable (LongLinkClient, Simulation) async throws -> Void
  ) async throws {
    let simulation = Simulation(seed: 1)
    try await simulation.run {
      let server = try LongLinkServer(listen: .host("10.0.0.1", port: 0), on: [simulation.mainLoop])
      server.register(parcels: Depot())
      try await server.start()
      let client = try LongLinkClient(
        to: server.endpoint, on: simulation.mainLoop)
      try await body(client, simulation)
      await client.close()
      await server.shutDown(within: .zero)
    }
  }

  @Test func `a service that is registered twice traps, and names the method and both places`()
    async
  {
    let result = await #expect(
      processExitsWith: .failure, observing: [\.standardErrorContent]
    ) {
      let server = try LongLinkServer(listen: .host("127.0.0.1", port: 9_000))
      server.register(parcels: Depot(), line: 1_001)
      server.register(parcels: Depot(), line: 1_002)
    }
    let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(said.contains("is set twice: first for parcel.Parcels/Send at \(#fileID):1001, then"))
    #expect(said.contains("at \(#fileID):1002"), "\(said)")
  }

  @Test func `a parcel comes back as it was sent`() async throws {
    try await run { client, _ in
      let parcels = ParcelsClient(client)
      let sent = try await parcels.send(SendRequest(parcel: sample, listeners: ["me", ""]))
      var expected = sample
      expected.number = sent.number
      #expect(try await parcels.find(FindRequest(number: sent.number)) == expected)
      _ = try await parcels.clear(ProtobufEmpty())
      let error = await #expect(throws: LongLinkError.self) {
        try await parcels.find(FindRequest(number: sent.number))
      }
      #expect(error?.response == 1_001)
    }
  }

  @Test func `a handle and a completion handler get the message too`() async throws {
    try await run { client, _ in
      let parcels = ParcelsClient(client, options: RequestOptions(timeout: .seconds(3)))
      let task = parcels.submitSend(SendRequest(parcel: sample))
      let number = try await task.value.number
      #expect(number == 1)
      let found: Result<Parcel, LongLinkError> = await withCheckedContinuation { waiter in
        parcels.find(FindRequest(number: number), on: .connectionLoop) {
          waiter.resume(returning: $0)
        }
      }
      #expect(try found.get().number == number)
      let missing: Result<Parcel, LongLinkError> = await withCheckedContinuation { waiter in
        parcels.find(FindRequest(number: 9), on: .connectionLoop) { waiter.resume(returning: $0) }
      }
      #expect(throws: LongLinkError.self) { try missing.get() }
    }
  }

  @Test func `pushes arrive as messages, and malformed ones as errors`() async throws {
    try await run { client, _ in
      var moves = client.pushes(of: Moved.self).makeAsyncIterator()
      _ = try await ParcelsClient(client).send(SendRequest(parcel: sample))
      #expect(try await moves.next() == Moved(number: 1, place: sample.destination))
    }
    let simulation = Simulation(seed: 1)
    try await simulation.run {
      let server = try await SimulatedParcelsServer.start(on: simulation.mainLoop)
      let client = try LongLinkClient(
        to: server.endpoint, on: simulation.mainLoop)
      try await client.connect()
      var moves = client.pushes(of: Moved.self, buffer: .dropOldest(9)).makeAsyncIterator()
      server.server.push(Moved.pushType, [0xff])
      server.server.push(Moved(number: 4))
      let error = await #expect(throws: LongLinkError.self) { try await moves.next() }
      #expect(error?.code == .decodingFailed)
      #expect(try await moves.next() == Moved(number: 4))
      await client.close()
      await server.stop()
    }
  }

  @Test func `a simulated server is scripted by method`() async throws {
    let simulation = Simulation(seed: 1)
    try await simulation.run {
      let server = try await SimulatedParcelsServer.start(on: simulation.mainLoop)
      server.onSend { request in
        guard request.listeners.isEmpty else { throw Rejection(1_002, "too many listeners") }
        return SendReply(number: 5)
      }
      server.onFind([.refuse(.overloaded), .reply(encoding: Parcel(number: 8))])
      server.onClear(.never)
      let client = try LongLinkClient(
        to: server.endpoint, on: simulation.mainLoop)
      let parcels = ParcelsClient(client)
      #expect(try await parcels.send(SendRequest()).number == 5)
      let refused = await #expect(throws: LongLinkError.self) {
        try await parcels.send(SendRequest(listeners: ["x"]))
      }
      #expect(refused?.response == 1_002)
      #expect(try await parcels.find(FindRequest(number: 1)).number == 8)
      let silent = await #expect(throws: LongLinkError.self) {
        try await parcels.clear(ProtobufEmpty(), options: RequestOptions(timeout: .seconds(1)))
      }
      #expect(silent?.code == .deadlineExceeded)
      #expect(try server.sendRequests() == [SendRequest(), SendRequest(listeners: ["x"])])
      #expect(try await server.waitForFind(count: 2).number == 1)
      await client.close()
      await server.stop()
    }
  }

  @Test func `messages are streamed in either direction`() async throws {
    try await run { client, _ in
      let parcels = ParcelsClient(client)
      var towns: [String?] = []
      for try await moved in parcels.track(FindRequest(number: 2)) {
        #expect(moved.number == 2)
        towns.append(moved.place?.town)
      }
      #expect(towns == ["Wien", "Graz"])
      let reply = try await parcels.sendAll { writer in
        for _ in 0..<3 { try await writer.write(SendRequest(parcel: sample)) }
      }
      #expect(reply.number == 3)
      try await parcels.unwrap { items, writer in
        var iterator = items.makeAsyncIterator()
        try await writer.write(sample)
        #expect(try await iterator.next() == sample.wrapping)
      }
    }
  }

  @Test func `a stream ends with what its handler throws, or with a malformed item`() async throws {
    try await run { client, _ in
      let parcels = ParcelsClient(client)
      var moves = parcels.track(FindRequest(number: 9)).makeAsyncIterator()
      _ = try await moves.next()
      _ = try await moves.next()
      let lost = await #expect(throws: LongLinkError.self) { try await moves.next() }
      #expect(lost?.response == 1_003 && lost?.itemsReceived == 2)
      let malformed = await #expect(throws: LongLinkError.self) {
        try await client.sendItems(ParcelsMethods.sendAll.type, []) { writer in
          try await writer.write(SendRequest(parcel: sample))
          try await writer.write([0xff])
        }
      }
      #expect(malformed?.response == .malformed && malformed?.delivery == .answered)
    }
  }

  @Test func `a simulated server sends items, and one that is malformed is an error`() async throws
  {
    let simulation = Simulation(seed: 1)
    try await simulation.run {
      let server = try await SimulatedParcelsServer.start(on: simulation.mainLoop)
      server.onTrack([
        .sequence([.item(encoding: Moved(number: 1)), .item([0xff]), .never]), .refuse(.overloaded),
      ])
      server.onSendAll(
        .sequence([.wait { $0.hasEnded }, .reply(encoding: SendReply(number: 6))]))
      let client = try LongLinkClient(to: server.endpoint, on: simulation.mainLoop)
      let parcels = ParcelsClient(client)
      var moves = parcels.track(FindRequest(number: 4)).makeAsyncIterator()
      #expect(try await moves.next() == Moved(number: 1))
      let malformed = await #expect(throws: LongLinkError.self) { try await moves.next() }
      #expect(malformed?.code == .decodingFailed && malformed?.itemsReceived == 1)
      let again = await #expect(throws: LongLinkError.self) { try await moves.next() }
      #expect(again?.code == .decodingFailed)
      let reply = try await parcels.sendAll { writer in
        try await writer.write(SendRequest(listeners: ["x"]))
      }
      #expect(reply.number == 6)
      #expect(try server.trackRequests() == [FindRequest(number: 4)])
      #expect(try await server.waitForTrack() == FindRequest(number: 4))
      #expect(try await server.waitForSendAll() == [SendRequest(listeners: ["x"])])
      #expect(try await server.waitForSendAll { $0.items.count == 1 }.count == 1)
      #expect(try server.sendAllItems() == [[SendRequest(listeners: ["x"])]])
      #expect(try server.unwrapItems() == [])
      await client.close()
      await server.stop()
    }
  }

  @Test func `a stream that is cut off goes on after its last message`() async throws {
    let simulation = Simulation(seed: 1)
    try await simulation.run {
      let server = try await SimulatedParcelsServer.start(on: simulation.mainLoop)
      server.onTrack([
        .sequence([.item(encoding: Moved(number: 4)), .pause(.seconds(1)), .reset]),
        .sequence([.item(encoding: Moved(number: 5)), .reply()]),
      ])
      let client = try LongLinkClient(to: server.endpoint, on: simulation.mainLoop)
      let moves = ParcelsClient(client).track(
        resuming: { last in FindRequest(number: last?.number ?? 0) })
      var numbers: [UInt64] = []
      for try await moved in moves { numbers.append(UInt64(moved.number)) }
      #expect(numbers == [4, 5])
      #expect(
        try server.trackRequests() == [FindRequest(number: 0), FindRequest(number: 4)])
      await client.close()
      await server.stop()
    }
  }

  @Test func `messages of a stream go to functions`() async throws {
    try await run { client, _ in
      let parcels = ParcelsClient(client)
      for waits in [false, true] {
        let towns = Mutex<[String?]>([])
        let outcome = await withCheckedContinuation { waiter in
          if waits {
            parcels.track(FindRequest(number: 2), on: .connectionLoop) { moved, next in
              towns.withLock { $0.append(moved.place?.town) }
              next()
            } completion: {
              waiter.resume(returning: $0)
            }
          } else {
            parcels.track(FindRequest(number: 2), on: .connectionLoop) { moved in
              towns.withLock { $0.append(moved.place?.town) }
            } completion: {
              waiter.resume(returning: $0)
            }
          }
        }
        try outcome.get()
        #expect(towns.withLock { $0 } == ["Wien", "Graz"])
      }
    }
  }

  @Test func `a blocking call gets the message`() async throws {
    let server = try LongLinkServer(listen: .host("127.0.0.1", port: 0))
    server.register(parcels: Depot())
    try await server.start()
    let endpoint = server.endpoint
    let number: Result<UInt64, any Error> = await withCheckedContinuation { waiter in
      Thread.detachNewThread {
        waiter.resume(
          returning: Result {
            let parcels = ParcelsClient(try LongLinkClient(to: endpoint))
            var count = 0
            try parcels.trackBlocking(FindRequest(number: 2)) { _ in count += 1 }
            #expect(count == 2)
            return try parcels.sendBlocking(SendRequest(parcel: sample)).number
          })
      }
    }
    #expect(try number.get() == 1)
    await server.shutDown(within: .zero)
  }

  @Test func `a body that is not the message is answered with 400`() async throws {
    try await run { client, _ in
      let error = await #expect(throws: LongLinkError.self) {
        try await client.request(ParcelsMethods.find.type, [0xff] as [UInt8])
      }
      #expect(error?.response == .malformed && error?.delivery == .refused)
    }
  }
}

@Suite struct WellKnownTests {
  @Test func `durations are those of Swift, to the nanosecond`() {
    for duration: Duration in [
      .zero, .nanoseconds(1), .nanoseconds(-1), .milliseconds(-1_500), .seconds(315_576_000_000),
    ] {
      #expect(ProtobufDuration(duration).duration == duration)
    }
    let value = ProtobufDuration(.milliseconds(-1_500))
    #expect(value.seconds == -1 && value.nanos == -500_000_000)
  }
}
