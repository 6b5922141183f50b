// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import LongLinkCore
internal import LongLinkTransport

/// One side of a scenario's stream, which reads and writes by the plan and records both.
struct StreamEnds: Sendable {
  /// Thrown by a writer that fails by the plan.
  struct Failure: Error {}
  /// The code of the response of a handler that fails by the plan.
  static let failureCode: ResponseCode = 1_001

  let plan: StreamPlan
  let side: ItemLedger.Writer
  let ledger: ItemLedger
  let clock: EventLoopClock
  /// Whether the process has not crashed.
  let isAlive: @Sendable () -> Bool

  /// A function that returns the other side's next item; nil at the end.
  typealias Next = () async throws(LongLinkError) -> [UInt8]?

  private var key: UInt64 { plan.key }
  private var other: ItemLedger.Writer { side == .requester ? .responder : .requester }
  private var own: StreamPlan.Items { side == .requester ? plan.requestItems : plan.responseItems }
  private var theirs: StreamPlan.Items {
    side == .requester ? plan.responseItems : plan.requestItems
  }
  private var writes: Bool {
    plan.shape.contains(side == .requester ? .requestItems : .responseItems)
  }

  // MARK: Writing

  /// Writes all items; throws where the plan says that the writer fails.
  func writeAll(_ writer: ItemWriter<[UInt8]>) async throws {
    for index in 0..<own.written { try await write(index, writer) }
    try failIfPlanned()
  }

  private func write(_ index: Int, _ writer: ItemWriter<[UInt8]>) async throws {
    if own.writePause > .zero { try await clock.sleep(for: own.writePause) }
    let item = plan.item(index, from: side)
    if isAlive() { ledger.writes(key, from: side, item) }
    try await writer.write(item)
    if isAlive() { ledger.wrote(key, from: side) }
  }

  private func failIfPlanned() throws {
    guard own.writerFailsAfter != nil else { return }
    if side == .responder { throw Rejection(Self.failureCode) }
    throw Failure()
  }

  /// Writes all items. The last write is cancelled while it waits; the connection still sends the
  /// item, before the response.
  func writeAllWithoutWaiting(_ writer: ItemWriter<[UInt8]>) async throws {
    guard own.written > 0 else { return try failIfPlanned() }
    for index in 0..<own.written - 1 { try await write(index, writer) }
    let item = plan.item(own.written - 1, from: side)
    if isAlive() { ledger.writes(key, from: side, item) }
    let outcome = await withTaskGroup(of: LongLinkError?.self) { group in
      group.addTask {
        do throws(LongLinkError) {
          try await writer.write(item)
          return nil
        } catch {
          return error
        }
      }
      try? await clock.sleep(for: .milliseconds(20))
      group.cancelAll()
      return await group.next() ?? nil
    }
    switch outcome {
    case nil: if isAlive() { ledger.wrote(key, from: side) }
    // The stream has ended. After a cancel, the item is sent or was withdrawn.
    case let error? where error.code != .cancelled: throw error
    case _?: break
    }
    try failIfPlanned()
  }

  /// Records that no item follows.
  func finished() {
    if writes, isAlive() { ledger.finished(key, from: side) }
  }

  // MARK: Reading

  /// Reads to the end, or as many items as the plan says; returns whether it has read to the end.
  @discardableResult
  func readAll(_ items: Items<[UInt8]>) async throws -> Bool {
    var iterator = items.makeAsyncIterator()
    return try await readAll { () async throws(LongLinkError) in try await iterator.next() }
  }

  func readAll(_ next: Next) async throws -> Bool {
    var count = 0
    while count != theirs.readerStopsAfter {
      guard try await read(next) else { return true }
      count += 1
    }
    return false
  }

  /// Reads an item; returns false at the end.
  private func read(_ next: Next) async throws -> Bool {
    do throws(LongLinkError) {
      guard let item = try await next() else {
        if isAlive() { ledger.readEnd(key, from: other) }
        return false
      }
      if isAlive() { ledger.read(key, from: other, item) }
    } catch {
      if isAlive() { ledger.readError(key, from: other, error) }
      throw error
    }
    if theirs.readPause > .zero { try await clock.sleep(for: theirs.readPause) }
    return true
  }

  // MARK: Both

  /// Reads and writes in two tasks.
  ///
  /// When the reader stops, the writer is stopped too. Otherwise, each side's writer could wait for
  /// a reader that has stopped.
  func readAndWrite(_ items: Items<[UInt8]>, _ writer: ItemWriter<[UInt8]>) async throws {
    try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask { try await readAll(items) }
      group.addTask {
        try await writeAll(writer)
        finished()
        if side == .requester { writer.finish() }
        return true
      }
      for _ in 0..<2 {
        guard try await group.next() == false else { continue }
        group.cancelAll()
        return
      }
    }
  }

  /// Reads and writes items by turns; then reads or writes the rest.
  func alternate(_ items: Items<[UInt8]>, _ writer: ItemWriter<[UInt8]>) async throws {
    var iterator = items.makeAsyncIterator()
    var (count, hasMore) = (0, true)
    for index in 0..<own.written {
      if hasMore, count != theirs.readerStopsAfter {
        hasMore = try await read { () async throws(LongLinkError) in try await iterator.next() }
        count += 1
      }
      try await write(index, writer)
    }
    try failIfPlanned()
    while hasMore, count != theirs.readerStopsAfter {
      hasMore = try await read { () async throws(LongLinkError) in try await iterator.next() }
      count += 1
    }
  }
}
