// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import LongLinkTransport
internal import Synchronization

/// Brings the items of a stream to an append: while some are written, the next ones arrive.
///
/// What has arrived is written as soon as nothing else of the append is. While more than
/// `mostWaiting` bytes wait, no item is taken, and so the stream grants no credit.
final class AppendFlow: Sendable {
  private struct State {
    var pieces: [[UInt8]] = []
    var size = 0
    var isWriting = false
    /// Why nothing is written any more.
    var failure: UploadFailure?
    /// Opened when all pieces have been taken, or nothing is written any more.
    var taken: Gate<Void>?
    /// The same, and all of them have been written.
    var idle: Gate<Void>?
  }

  /// What the reader of the items does next.
  private enum Next {
    case go
    case start
    case wait(Gate<Void>)
    case fail(UploadFailure)
  }

  private static let mostWaiting = 1 << 18

  private let append: Append
  private let threads: FileThreads
  private let loop: EventLoop
  private let allowance: WaitingBytes
  private let minRate: Int
  private let state = Mutex(State())

  /// Begins an append, whose items come to `loop`, at `minRate` bytes per second or more.
  init(
    _ append: Append, _ threads: FileThreads, on loop: EventLoop, _ allowance: WaitingBytes,
    minRate: Int
  ) {
    self.append = append
    self.threads = threads
    self.loop = loop
    self.allowance = allowance
    self.minRate = minRate
  }

  /// Writes all items, and returns when they are written. Throws `UploadFailure`, and what reading
  /// the items throws; what has arrived before is written then.
  func copy(_ items: Items) async throws {
    let result: Result<Void, any Error>
    do {
      try await take(items)
      result = .success(())
    } catch {
      result = .failure(error)
    }
    if let failure = await finish() { throw failure }
    try result.get()
  }

  private func take(_ items: Items) async throws {
    var pace = AppendPace(bytesPerSecond: minRate)
    var iterator = items.makeAsyncIterator()
    var start = loop.clock.now
    while let item = try await iterator.next() {
      let wait = loop.clock.now - start
      if !item.isEmpty { try await put(item) }
      if pace.isTooSlow(item.count, after: wait) {
        throw UploadFailure.tooSlow("an append has at least \(minRate) bytes per second")
      }
      start = loop.clock.now
    }
  }

  private func put(_ item: [UInt8]) async throws(UploadFailure) {
    guard allowance.take(item.count) else {
      throw .tooMany("too many bytes wait to be written")
    }
    let next: Next = state.withLock(of: self) { state in
      if let failure = state.failure { return .fail(failure) }
      state.pieces.append(item)
      state.size += item.count
      guard state.isWriting else {
        state.isWriting = true
        return .start
      }
      guard state.size >= Self.mostWaiting else { return .go }
      let gate = Gate<Void>()
      state.taken = gate
      return .wait(gate)
    }
    switch next {
    case .go: break
    case .start: threads.start(on: loop) { self.write() }
    case .wait(let gate): await gate.value
    case .fail(let failure):
      allowance.giveBack(item.count)
      throw failure
    }
  }

  /// Writes what has arrived until nothing more has; on a thread for files.
  private func write() {
    while let (pieces, size) = take() {
      do throws(UploadFailure) {
        try append.write(pieces)
        allowance.giveBack(size)
      } catch {
        allowance.giveBack(size)
        fail(error)
      }
    }
  }

  private func take() -> ([[UInt8]], Int)? {
    let (taken, opened) = state.withLock(of: self) { state -> (([[UInt8]], Int)?, [Gate<Void>]) in
      var opened = [state.taken].compactMap { $0 }
      state.taken = nil
      guard state.size > 0 else {
        state.isWriting = false
        opened += [state.idle].compactMap { $0 }
        state.idle = nil
        return (nil, opened)
      }
      defer { (state.pieces, state.size) = ([], 0) }
      return ((state.pieces, state.size), opened)
    }
    for gate in opened { gate.open(()) }
    return taken
  }

  private func fail(_ failure: UploadFailure) {
    let dropped = state.withLock(of: self) { state in
      state.failure = failure
      defer { (state.pieces, state.size) = ([], 0) }
      return state.size
    }
    allowance.giveBack(dropped)
  }

  /// Returns when nothing is written any more, and the failure if there was one.
  private func finish() async -> UploadFailure? {
    let gate = state.withLock(of: self) { state -> Gate<Void>? in
      guard state.isWriting else { return nil }
      let gate = Gate<Void>()
      state.idle = gate
      return gate
    }
    await gate?.value
    return state.withLock(of: self) { $0.failure }
  }
}

/// A bound on the bytes of all appends that wait to be written.
final class WaitingBytes: Sendable {
  private let most: Int
  private let taken = Mutex(0)

  init(_ most: Int) {
    self.most = most
  }

  func take(_ count: Int) -> Bool {
    taken.withLock(of: self) { taken in
      guard count <= most - taken else { return false }
      taken += count
      return true
    }
  }

  func giveBack(_ count: Int) {
    taken.withLock(of: self) { $0 -= count }
  }
}
