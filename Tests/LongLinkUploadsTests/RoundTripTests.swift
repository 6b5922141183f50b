// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkServer
import LongLinkTesting
import LongLinkUploads
import LongLinkUploadsServer
import Testing

/// The real client with the real server, in a simulated network.
@Suite(.timeLimit(.minutes(3))) struct RoundTripTests {
  private static let address = SocketAddress.ipv4(10, 0, 0, 1, port: 4_000)

  /// A server that keeps its uploads in a folder.
  private func process(
    _ simulation: Simulation, _ folder: String, _ limits: UploadLimits = UploadLimits()
  ) -> SimulatedProcess {
    simulation.process(named: "server") { run in
      let server = try LongLinkServer(
        ServerConfiguration(listen: [Endpoint(RoundTripTests.address)]), on: [run.loop])
      try server.routeUploads(in: folder, limits: limits)
      run.atEnd { await server.shutDown(within: .zero) }
      try await server.start()
    }
  }

  @Test(arguments: 1...12 as ClosedRange<UInt64>)
  func `an upload survives lost connections and a client that is replaced`(
    seed: UInt64
  ) async throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: folder.path("uploads"), withIntermediateDirectories: false)
    let bytes = sampleBytes(1_500_000, seed: seed)
    let path = try folder.write("harbour.jpg", bytes)
    let simulation = Simulation(seed: seed)
    try await simulation.run {
      var limits = UploadLimits()
      limits.maxAppendBytes = 200_000
      let server = process(simulation, folder.path("uploads"), limits)
      try await server.start()
      simulation.network.conditions = LinkConditions(latency: .zero ... .milliseconds(20))
      let losses = simulation.spawn {
        while true {
          try await simulation.sleep(
            for: .milliseconds(Int64(simulation.random(in: 100...1_500 as ClosedRange<UInt64>))))
          simulation.network.loseAllLinks()
        }
      }
      let body: [UploadPart] = [.field("title", "night"), .file("photo", at: path)]
      let options = UploadOptions(bytesPerSecond: 300_000, record: folder.path("record"))
      var receipt: UploadReceipt?
      while receipt == nil {
        let client = try LongLinkClient(
          to: Endpoint(RoundTripTests.address), on: simulation.mainLoop)
        let upload = Uploader(client).start(body, options: options)
        let end = simulation.spawn {
          try await simulation.sleep(for: .seconds(2))
          await client.close()
        }
        receipt = try? await upload.receipt
        end.cancel()
        await client.close()
      }
      losses.cancel()
      server.crash()
      let kept = folder.path("uploads/\(receipt?.id ?? "")/harbour.jpg")
      #expect(try Data(contentsOf: URL(filePath: kept)) == Data(bytes))
      #expect(receipt?.names == ["", "harbour.jpg"])
      #expect(receipt?.size == UInt64(bytes.count + 5))
    }
    #expect(simulation.escapes.isEmpty)
  }

  @Test func `the limits of the server are errors with names`() async throws {
    let folder = try TemporaryFolder()
    let simulation = Simulation(seed: 1)
    try await simulation.run {
      var limits = UploadLimits()
      limits.maxUploadBytes = 1_000_000
      limits.maxClientBytes = 500_000
      let server = process(simulation, folder.url.path, limits)
      try await server.start()
      let client = try LongLinkClient(
        to: Endpoint(RoundTripTests.address), on: simulation.mainLoop)
      let cases: [(Int, Bool, UploadError.Code)] = [
        (1_000_001, true, .tooLarge), (500_001, true, .noSpace), (500_001, false, .noSpace),
      ]
      for (count, isKnown, code) in cases {
        let content = UploadContent.pieces(
          sampleBytes(count), length: isKnown ? UInt64(count) : nil, size: 10_000)
        let error = await #expect(throws: UploadError.self) {
          try await Uploader(client).upload(
            [UploadPart("f", fileName: "f", content)],
            options: UploadOptions(abortsOnCancel: true))
        }
        #expect(error?.code == code)
      }
      await client.close()
      server.crash()
    }
  }

  @Test func `uploads go over sockets, too`() async throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: folder.path("uploads"), withIntermediateDirectories: false)
    let server = try LongLinkServer(listen: .host("127.0.0.1", port: 0))
    try server.routeUploads(in: folder.path("uploads"))
    try await server.start()
    let loop = try EventLoop()
    let client = try LongLinkClient(to: Endpoint(server.addresses[0]), on: loop)
    let bytes = sampleBytes(5_000_000)
    let path = try folder.write("a", bytes)
    let empty = try folder.write("b", [])
    try await withThrowingTaskGroup(of: UploadReceipt.self) { group in
      for _ in 0..<6 {
        group.addTask {
          try await Uploader(client).upload(
            [.file("f", at: path), .file("f", at: empty)])
        }
      }
      for try await receipt in group {
        let kept = folder.path("uploads/\(receipt.id)/a")
        #expect(try Data(contentsOf: URL(filePath: kept)) == Data(bytes))
      }
    }
    await client.close()
    await server.shutDown(within: .zero)
    loop.shutDown()
  }
}
