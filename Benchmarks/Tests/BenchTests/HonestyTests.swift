// SPDX-License-Identifier: Apache-2.0

import BenchDriver
import BenchSupport
import Foundation
import Testing

/// The folder of the peers' programs, which is that of the tests.
let folder: URL = {
  let tests = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? Bundle.main.bundlePath
  return URL(fileURLWithPath: tests).deletingLastPathComponent()
}()

/// Tests that a run with wrong responses gives no figures.
@Suite(.timeLimit(.minutes(5))) struct HonestyTests {
  /// The peers that use LongLink's frames.
  static let programs = ["FloorPeer", "LongLinkPeer", "NIOPeer"]

  private func load(_ program: String, _ server: EchoServer) throws -> (Int32, Outcome?) {
    let client = try Child([
      folder.appendingPathComponent(program).path, "load", "--port=\(server.port)",
      "--in-flight=2", "--warm-up=0", "--seconds=0.1",
    ])
    let lines = client.readToEnd().split(separator: "\n")
    let outcome = lines.last.flatMap {
      try? JSONDecoder().decode(Outcome.self, from: Data($0.utf8))
    }
    return (client.exitCode(), outcome)
  }

  @Test(arguments: programs)
  func `right answers are counted`(_ program: String) throws {
    let (code, outcome) = try load(program, EchoServer())
    #expect(code == 0)
    #expect(try #require(outcome).allRequests > 0)
  }

  @Test(arguments: programs, [EchoServer.Lie.wrongLastByte, .shortBody, .swapped])
  func `a wrong answer leaves no figures`(_ program: String, _ lie: EchoServer.Lie) throws {
    let (code, outcome) = try load(program, EchoServer(lie))
    #expect(code == 1)
    #expect(outcome == nil)
  }

  @Test func `a wrong checksum leaves the floor no figures`() throws {
    let (code, outcome) = try load("FloorPeer", EchoServer(.wrongChecksum))
    #expect(code == 1)
    #expect(outcome == nil)
  }

  @Test func `as many requests have to have come as were answered`() throws {
    let client = Outcome(
      requests: 90, seconds: 1, allRequests: 100, p50: 1, p99: 1, p999: 1, cpu: 1, allocations: 0,
      systemCalls: 0, peakMemory: 0)
    func server(_ requests: UInt64) -> ServerOutcome {
      ServerOutcome(
        requests: requests, cpu: 1, allocations: 0, systemCalls: 0, peakMemory: 0, memory: 0)
    }
    try Runner.check(client, server(100), "a subject")
    for wrong in [0, 90, 99, 101] as [UInt64] {
      #expect(throws: BenchError.self) { try Runner.check(client, server(wrong), "a subject") }
    }
    var idle = client
    idle.requests = 0
    #expect(throws: BenchError.self) { try Runner.check(idle, server(100), "a subject") }
  }

  @Test func `every subject does every work that it is measured at`() throws {
    let runner = Runner(folder: folder, seconds: 0.05, warmUp: 0)
    for subject in Subject.all(isQuick: false, grpc: nil, hasRedis: false) {
      for work in Work.all where subject.isMeasured(work, .free) {
        let run = try runner.run(subject, work, .free, round: 1)
        #expect(run.client.requests > 0, "\(subject.name), \(work.name)")
        // Items alone are counted; requests are timed.
        let isTimed = work.direction == nil || work.direction == .beside
        #expect((run.client.p50 > 0) == isTimed && run.client.p50 <= run.client.p999)
      }
    }
  }
}
