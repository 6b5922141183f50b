// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport
internal import Synchronization

/// Writes the items of a stream into an append: while some are written, the next ones arrive.
///
/// Waiting bytes are written when no other bytes of the append are being written, at most
/// `mostWaiting` in a turn. While more bytes wait, no item is taken, so that the stream grants no
/// credit.
final class AppendFlow: Sendable {
  private struct State {
    /// The items that wait to be written, and the number of their bytes.
    var pieces = Queue<[UInt8]>()
    var size = 0
    var isWriting = false
    /// The failure that has stopped the writing; nil while there is none.
    var failure: UploadFailure?
    /// Opened when fewer than `mostWaiting` bytes wait, or writing has failed.
    var taken: Gate<Void>?
    /// Opened when no bytes wait.
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
  private let owner: String
  private let threads: FileThreads
  private let loop: EventLoop
  private let allowance: WaitingBytes
  private let minRate: Int
  private let state = Mutex(State())

  /// Begins an append, whose items arrive on `loop`. They must arrive at `minRate` bytes per second
  /// or more.
  init(
    _ append: Append, of owner: String, _ threads: FileThreads, on loop: EventLoop,
    _ allowance: WaitingBytes, minRate: Int
  ) {
    self.append = append
    self.owner = owner
    self.threads = threads
    self.loop = loop
    self.allowance = allowance
    self.minRate = minRate
  }

  /// Writes all items, and returns when they are written. Throws `UploadFailure`, and the errors of
  /// reading the items; items that arrived before are written then.
  func copy(_ items: Items<[UInt8]>) async throws {
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

  private func take(_ items: Items<[UInt8]>) async throws {
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
    case .start:
      // The rest of the item that is being written. One turn at a time uses it.
      let rest = Mutex<ArraySlice<UInt8>>([])
      threads.start(of: owner, on: loop) { rest.withLock(of: self) { self.write(&$0) } }
    case .wait(let gate): await gate.value
    case .fail(let failure):
      allowance.giveBack(item.count)
      throw failure
    }
  }

  /// Writes some of the waiting bytes, on a thread for files; returns whether more wait. `rest` is
  /// the part of an item that is not written yet.
  private func write(_ rest: inout ArraySlice<UInt8>) -> Bool {
    var left = Self.mostWaiting
    while left > 0 {
      if rest.isEmpty {
        guard let piece = state.withLock(of: self, { $0.pieces.popFirst() }) else { break }
        rest = piece[...]
      }
      let piece = rest.prefix(left)
      do throws(UploadFailure) {
        let written = try append.write(piece)
        rest = rest.dropFirst(written)
        left -= written
        wrote(written)
        // `append` has flushed files or cut them, which is enough work for a turn.
        if written < piece.count { break }
      } catch {
        rest = []
        fail(error)
      }
    }
    return needsMore()
  }

  private func wrote(_ count: Int) {
    allowance.giveBack(count)
    let opened = state.withLock(of: self) { state -> Gate<Void>? in
      state.size -= count
      guard state.size < Self.mostWaiting else { return nil }
      return state.taken.take()
    }
    opened?.open(())
  }

  private func needsMore() -> Bool {
    let opened = state.withLock(of: self) { state -> Gate<Void>?? in
      guard state.size == 0 else { return nil }
      state.isWriting = false
      return .some(state.idle.take())
    }
    guard let opened else { return true }
    opened?.open(())
    return false
  }

  private func fail(_ failure: UploadFailure) {
    let (dropped, opened) = state.withLock(of: self) { state in
      state.failure = failure
      state.pieces.removeAll()
      defer { state.size = 0 }
      return (state.size, state.taken.take())
    }
    allowance.giveBack(dropped)
    opened?.open(())
  }

  /// Waits until nothing is being written, and returns the failure if there was one.
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

/// Limits the bytes of all appends that wait to be written.
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
