// SPDX-License-Identifier: Apache-2.0

import BenchDriver
import BenchSupport
import Foundation
import Testing

/// Tests of the reported figures and of LongLink's costs.
@Suite(.timeLimit(.minutes(5))) struct FigureTests {
  private func run(_ subject: String, round: Int, rate: UInt64, p50: UInt64) -> Run {
    Run(
      subject: subject, work: Work(shape: .many, body: 64), placement: .one, round: round,
      client: Outcome(
        requests: rate, seconds: 1, allRequests: rate, p50: p50, p99: p50, p999: p50, cpu: 0.5,
        allocations: rate * 2, systemCalls: rate / 10, peakMemory: 1 << 20),
      server: ServerOutcome(
        requests: rate, cpu: 0.5, allocations: rate, systemCalls: rate / 10, peakMemory: 1 << 20,
        memory: 1 << 20))
  }

  @Test func `a ratio is that to the floor of the same round`() throws {
    let floor = [(1, 1_000), (2, 500), (3, 2_000)].map {
      run("floor", round: $0.0, rate: UInt64($0.1), p50: 1_000_000 / UInt64($0.1))
    }
    let runs = [(1, 500), (2, 50), (3, 1_600)].map {
      run("other", round: $0.0, rate: UInt64($0.1), p50: 2_000_000 / UInt64($0.1))
    }
    let summary = try #require(Summary(runs, floor: floor))
    #expect(summary.rateRatio.median == 0.5)
    #expect(summary.rateRatio.least == 0.1)
    #expect(summary.rateRatio.most == 0.8)
    #expect(summary.timeRatio.median == 4)
    #expect(summary.rate.median == 500)
    #expect(summary.clientAllocations == 2)
    #expect(summary.serverAllocations == 1)
    #expect(summary.clientCalls == 0.1)
    #expect(Summary([], floor: floor) == nil)
    let table = Table([summary]).text
    #expect(table.contains("0.50 (0.10–0.80)"))
    #expect(RatioTable([summary]).text.contains("| other | 0.50 |"))
    #expect(Chart([summary], title: "a < b").svg.contains("a &lt; b"))
  }

  @Test func `the chart shows the ratios of the table, and marks what its axes cut off`() throws {
    func svg(_ shape: Work.Shape, rates: [UInt64], p50s: [UInt64]) throws -> String {
      func runs(_ name: String, _ rates: [UInt64], _ p50s: [UInt64]) -> [Run] {
        rates.indices.map { index in
          let run = run(name, round: index, rate: rates[index], p50: p50s[index])
          return Run(
            subject: name, work: Work(shape: shape, body: 64), placement: .free, round: index,
            client: run.client, server: run.server)
        }
      }
      let same = [UInt64](repeating: 1_000, count: rates.count)
      let summary = try #require(
        Summary(runs("other", rates, p50s), floor: runs("floor", same, same)))
      let spinning = try #require(
        Summary(runs("floor spinning", rates, p50s), floor: runs("floor", same, same)))
      let svg = Chart([summary, spinning], title: "").svg
      #expect(!svg.contains("spinning"))
      return svg
    }
    func cuts(_ svg: String) -> Int { svg.components(separatedBy: "fill-opacity").count - 1 }
    let time = try svg(.single, rates: [500, 400, 250], p50s: [2_000, 2_500, 4_000])
    #expect(time.contains(">2.50<") && cuts(time) == 0)
    let rate = try svg(.many, rates: [500, 400, 250], p50s: [2_000, 2_500, 4_000])
    #expect(rate.contains(">0.40<") && cuts(rate) == 0)
    let wide = try svg(.single, rates: [500, 400, 250], p50s: [100, 2_500, 9_000])
    #expect(wide.contains(">2.50<") && cuts(wide) == 2)
  }

  @Test func `the median of an even number is between the middle two`() {
    #expect(Summary.Spread([4, 1, 3, 2]).median == 2.5)
    #expect(Summary.Spread([7]).median == 7)
  }

  @Test(arguments: [1, 1_024, 65_536])
  func `the checksum is zlib's`(_ size: Int) throws {
    _ = try Adler32Ratio.measure(size: size, rounds: 1)
  }

  /// The goal for 1 GiB; the size of the stream makes no difference once its windows are full.
  @Test func `a long stream to a reader that pauses is not kept in memory`() throws {
    let growth = try Runner(folder: folder, seconds: 1, warmUp: 0).growth(items: 2_048)
    #expect(growth.client <= 8 << 20)
    #expect(growth.server <= 8 << 20)
  }

  /// Counts, not times: they are the same on any machine. So are the calls on one processor; on two
  /// they depend on which side is ahead, and how often a long turn writes.
  @Test func `a request costs so many allocations and calls of the system`() throws {
    let runner = Runner(folder: folder, seconds: 0.5, warmUp: 0.2)
    func costs(_ name: String, _ placement: Placement = .free) throws -> Summary {
      let subjects = Subject.all(isQuick: false, grpc: nil, hasRedis: false)
      let subject = try #require(subjects.first { $0.name == name })
      let run = try runner.run(subject, Work(shape: .many, body: 64), placement, round: 1)
      return try #require(Summary([run], floor: []))
    }
    let loop = try costs("longlink")
    // Other costs, such as a timer of the process, are a thousandth.
    #expect(try #require(loop.clientAllocations) <= 1.02)
    #expect(try #require(loop.serverAllocations) <= 1.02)
    let pinned = try costs("longlink", .one)
    #expect(try #require(pinned.clientCalls) <= 0.04)
    #expect(try #require(pinned.serverCalls) <= 0.04)
    // The caller's own closure is the second.
    let callbacks = try costs("longlink callbacks")
    #expect(try #require(callbacks.clientAllocations) <= 2.02)
    // The item that the reader gets is the one allocation.
    for shape in [Work.Shape.down, .up] {
      let subject = try #require(
        Subject.all(isQuick: false, grpc: nil, hasRedis: false).first { $0.name == "longlink" })
      let run = try runner.run(subject, Work(shape: shape, body: 64), .one, round: 1)
      let items = try #require(Summary([run], floor: []))
      let allocations = try #require(items.clientAllocations) + #require(items.serverAllocations)
      #expect(allocations <= 1.1, "\(shape)")
      #expect(try #require(items.clientCalls) + #require(items.serverCalls) <= 0.05, "\(shape)")
    }
    let asynchronous = try costs("longlink async handler")
    #expect(try #require(asynchronous.serverAllocations) <= 4.02)
  }

  /// The run, its key, and, beside a task, the reply. Beyond that, the store adds 512 records at a
  /// time.
  @Test func `a request that runs once costs so many allocations more`() throws {
    let runner = Runner(folder: folder, seconds: 0.5, warmUp: 0.2)
    for (name, most) in [("longlink once", 4.1), ("longlink once async", 7.1)] {
      let subject = try #require(
        Subject.all(isQuick: false, grpc: nil, hasRedis: false).first { $0.name == name })
      let run = try runner.run(subject, Work(shape: .many, body: 64), .free, round: 1)
      let costs = try #require(Summary([run], floor: []))
      #expect(try #require(costs.serverAllocations) <= most, "\(name)")
      #expect(try #require(costs.clientAllocations) <= 1.02, "\(name)")
    }
  }

  /// OpenSSL 3 allocates three times for each record that it writes and once for each that it
  /// reads, wherever it begins a WPACKET or a part of one: for the record, for its length, and, both
  /// ways, for what is authenticated beside it.
  /// With one request in flight these are all of a request's, with many they are shared.
  @Test func `a request over TLS costs what OpenSSL's records cost more`() throws {
    let runner = Runner(folder: folder, seconds: 0.5, warmUp: 0.2)
    let subject = try #require(
      Subject.all(isQuick: false, grpc: nil, hasRedis: false).first { $0.name == "longlink TLS" })
    func costs(_ shape: Work.Shape) throws -> Summary {
      let run = try runner.run(subject, Work(shape: shape, body: 64), .one, round: 1)
      return try #require(Summary([run], floor: []))
    }
    // One in flight are few requests on a busy machine, and what the process does beside them counts:
    // the least of some runs is what a request costs.
    var least = Double.infinity
    for _ in 0..<5 where least > 5.2 {
      let single = try costs(.single)
      least = min(
        least, max(try #require(single.clientAllocations), try #require(single.serverAllocations)))
    }
    #expect(least <= 5.2)
    let many = try costs(.many)
    #expect(try #require(many.clientAllocations) <= 1.2)
    #expect(try #require(many.serverAllocations) <= 1.2)
    #expect(try #require(many.clientCalls) <= 0.1)
    #expect(try #require(many.serverCalls) <= 0.1)
  }

  /// What a client is beyond its connection, with the server's tables; these have up to twice the
  /// room that they need, depending on the number of clients.
  @Test func `a client with an identity costs the server 200 bytes at most`() throws {
    let scale = Scale(Runner(folder: folder, seconds: 1, warmUp: 0.5))
    let clients = try scale.identities(connections: 5_000)
    #expect(clients.identity > 100 && clients.identity <= 200)
    #expect(clients.principal <= 400)
  }

  /// Most of what the server allocates is the call of `authenticate`, with its task. A heartbeat may
  /// be among what came.
  @Test func `a renewal is two frames, and costs so many allocations`() throws {
    let scale = Scale(Runner(folder: folder, seconds: 1, warmUp: 0.5))
    let renewals = try scale.renewals(connections: 200, seconds: 5)
    #expect(renewals.count > 200)
    #expect(renewals.answers <= 1.1)
    #expect(renewals.clientAllocations <= 12)
    #expect(renewals.serverAllocations <= 30)
  }

  /// What an idle connection holds is OpenSSL's state: 16 KiB of resident memory are measured on
  /// the server, and 20 KiB, with the server's certificate, on the client. OpenSSL's buffers, of
  /// 17 KiB each, and a chain of certificates must not be among it.
  @Test func `an idle connection with TLS holds 24 KiB more than a plain one at most`() throws {
    let scale = Scale(Runner(folder: folder, seconds: 1, warmUp: 0.5))
    let count = 2_000
    let plain = try scale.idle(connections: count, seconds: 0)
    let secured = try scale.idle(connections: count, seconds: 0, tls: true)
    let client = Int(secured.client.memory) - Int(plain.client.memory)
    let server = Int(secured.serverMemory) - Int(plain.serverMemory)
    #expect(client / count <= 24 * 1_024, "client, bytes")
    #expect(server / count <= 24 * 1_024, "server, bytes")
  }
}
