// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BenchSupport
import Foundation
import LongLink
import LongLinkServer
import Logging
import Synchronization

/// Carries the items of one stream.
struct Stream: AsyncParsableCommand {
  enum Style: String, CaseIterable, ExpressibleByArgument {
    /// A task on the client's event loop.
    case loop
    /// A task on the global pool.
    case pool
  }

  @OptionGroup var load: StreamLoad
  @Option(help: "The executor of the task that reads or writes the items.")
  var style = Style.loop

  func run() async throws {
    let loop = try EventLoop(name: "bench")
    var configuration = ClientConfiguration(servers: [.host("127.0.0.1", port: load.port)])
    configuration.timeouts.request = .seconds(60)
    configuration.logger.logLevel = .critical
    let client = try LongLinkClient(configuration, on: loop)
    try await client.connect()
    let idleMemory = Usage.residentMemory
    let meter = Meter(lanes: load.direction == .beside ? 1 : 0, body: 64, timedStride: 1)
    let items = RequestCount()
    let executor: any TaskExecutor = style == .loop ? loop : globalConcurrentExecutor
    let (load, self_) = (load, self)
    let work = Task(executorPreference: executor) {
      do {
        try await load.direction == .up
          ? self_.write(to: client, meter, items) : self_.read(from: client, items)
      } catch {
        Meter.fail("\(error)")
      }
    }
    for lane in meter.lanes {
      Task(executorPreference: loop) {
        while true {
          let request = lane.begin()
          let answer = try await client.request(1, lane.body)
          guard answer.withUnsafeBytes({ lane.answered(request, with: $0) }) else { return }
        }
      }
    }
    var outcome = await withCheckedContinuation { continuation in
      Thread.detachNewThread { continuation.resume(returning: meter.measure(load, items: items)) }
    }
    if load.direction != .up { _ = try await client.request(StreamTypes.stop, []) }
    await work.value
    outcome.allRequests = items.value + meter.answers
    outcome.idleMemory = idleMemory
    try outcome.print()
    Foundation.exit(0)
  }

  private var options: StreamOptions {
    StreamOptions(window: load.ownWindow ? nil : Int(load.window))
  }

  private func read(from client: LongLinkClient, _ items: RequestCount) async throws {
    var check = ItemCheck(body: load.body)
    var pauses = Pauses(load)
    let stream = client.stream(StreamTypes.wanted, StreamTypes.body(load.body), options: options)
    for try await item in stream {
      check.next(item)
      items.oneMoreOnOneThread()
      if let pause = pauses.next() { try await Task.sleep(for: pause) }
    }
  }

  private func write(
    to client: LongLinkClient, _ meter: Meter, _ items: RequestCount
  ) async throws {
    let answer = try await client.sendItems(
      StreamTypes.follow, StreamTypes.body(load.body), options: options
    ) { writer in
      var source = ItemSource(body: load.body)
      var pauses = Pauses(load)
      while !meter.isOver {
        if style == .loop {
          try await writer.write(source.next())
          items.oneMoreOnOneThread()
        } else {
          let batch = (0..<max(1, min(64, 65_536 / load.body))).map { _ in source.next() }
          try await writer.write(contentsOf: batch)
          for _ in batch { items.oneMoreOnOneThread() }
        }
        if let pause = pauses.next() { try await Task.sleep(for: pause) }
      }
    }
    guard answer == StreamTypes.bytes(items.value) else {
      Meter.fail("the server did not get as many items as were sent")
    }
  }
}

/// The streams of the server.
enum StreamTypes {
  /// Asks for items, until `stop` comes.
  static let wanted: MessageType = 10
  static let stop: MessageType = 11
  /// Items of the client follow.
  static let follow: MessageType = 12

  /// The body of a request for a stream: the size of its items.
  static func body(_ size: Int) -> [UInt8] { bytes(UInt64(size)) }

  static func bytes(_ number: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
  }

  static func number(_ bytes: some Sequence<UInt8>) -> UInt64 {
    bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Sets the routes of streams, whose items it counts. They run on the server's one loop.
  static func route(on server: LongLinkServer, counting requests: RequestCount) {
    let stop = StopFlag()
    server.routeStream(wanted, .responseItems) { request, _, writer in
      var source = ItemSource(body: Int(number(request.body)))
      while !stop.isSet {
        try await writer.write(source.next())
        requests.oneMoreOnOneThread()
      }
      return [UInt8]()
    }
    server.route(StreamTypes.stop) { _ in
      stop.set()
      return [UInt8]()
    }
    server.routeStream(follow, .requestItems) { request, items, _ in
      var check = ItemCheck(body: Int(number(request.body)))
      for try await item in items {
        check.next(item)
        requests.oneMoreOnOneThread()
      }
      return bytes(check.count)
    }
  }
}

/// Whether the server's stream is to end.
private final class StopFlag: Sendable {
  private let storage = Atomic(false)

  var isSet: Bool { storage.load(ordering: .relaxed) }
  func set() { storage.store(true, ordering: .relaxed) }
}

/// When a reader or writer pauses, and for how long: drawn from a seed, 5 ms at most.
private struct Pauses {
  private let isOn: Bool
  private var state: UInt64 = 1
  private var left = 1

  init(_ load: StreamLoad) { isOn = load.items != nil }

  mutating func next() -> Duration? {
    guard isOn else { return nil }
    left -= 1
    guard left == 0 else { return nil }
    // The constants of Knuth's MMIX generator.
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    left = Int(state >> 57) + 1
    return .microseconds(Int(state >> 40) % 5_000)
  }
}
