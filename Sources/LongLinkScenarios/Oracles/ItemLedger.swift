// SPDX-License-Identifier: Apache-2.0

package import LongLinkDriver
package import LongLinkCore
internal import Synchronization

/// Records the items of streams on both sides, by the keys of their requests. Any thread may use
/// it.
///
/// An ``Oracle`` has one. On the writing side, call `writes` before each item is written, `wrote`
/// when the call has returned, and `finished` before the items are ended. On the reading side, call
/// `read` for each item, and `readEnd` or `readError` at the end. The caller of the stream calls
/// `opened` and `closed`. Record the request itself in ``Oracle/requests``.
package final class ItemLedger: Sendable {
  /// The side of a stream that writes the items.
  package enum Writer: String, CaseIterable, Hashable, Sendable {
    case requester
    case responder
  }

  private struct LaneName: Hashable {
    let key: UInt64
    let writer: Writer
  }

  /// An item's size and digest, which need little memory.
  private struct Print: Hashable {
    let size: Int
    let digest: UInt32

    init(_ item: [UInt8]) {
      size = item.count
      // The item's elements are bytes, so there is no padding between them.
      digest = unsafe Adler32.checksum(of: item.span.bytes)
    }

    /// The least credit, in bytes, that sending the item costs.
    var leastCost: Int {
      size + max(1, (size + Wire.fragmentLimit - 1) / Wire.fragmentLimit) * Wire.itemOverhead
    }
  }

  /// The items of one direction.
  private struct Lane {
    /// The items that were written, or were about to be.
    var items: [Print] = []
    /// The number of items whose write has returned.
    var wrote = 0
    var isFinished = false
    var read = 0
    var hasReadEnd = false
    /// The least credit that the items cost which were written and not yet read, in bytes.
    var untaken = 0
    /// The reader's largest window, in bytes; nil if it is not checked.
    var window: Int?
    var isTooFull = false
    var largest = 0
  }

  private struct State {
    var lanes: [LaneName: Lane] = [:]
    var open: Set<UInt64> = []
    var opened = 0
    var completed: Set<UInt64> = []
    var itemsRead = 0
    var lastEvent = LinkInstant(nanoseconds: 0)
    var broken: [(OraclePromise, String)] = []
  }

  private let state = Mutex(State())
  private let now: @Sendable () -> LinkInstant

  /// Makes an empty ledger with the simulation's clock.
  init(now: @escaping @Sendable () -> LinkInstant) {
    self.now = now
  }

  // MARK: The caller

  /// Records that a stream is opened.
  package func opened(_ key: UInt64) {
    update { state in
      state.opened += 1
      state.open.insert(key)
    }
  }

  /// Records that a stream has ended for its caller.
  package func closed(_ key: UInt64) {
    update { $0.open.remove(key) }
  }

  /// Sets the reader's largest window for one direction, in bytes. Without it, the promise about
  /// windows is not checked.
  package func setWindow(_ key: UInt64, from writer: Writer, bytes: Int) {
    change(key, writer) { lane, _ in lane.window = max(bytes, Wire.leastCredit) }
  }

  // MARK: The writer

  /// Records that an item is about to be written.
  package func writes(_ key: UInt64, from writer: Writer, _ item: [UInt8]) {
    let print = Print(item)
    change(key, writer) { lane, broken in
      if lane.isFinished {
        broken.append((.itemsInOrder, "an item is written after the items were finished"))
      }
      lane.items.append(print)
      lane.largest = max(lane.largest, item.count)
    }
  }

  /// Records that a write has returned, so that its item may be on its way.
  package func wrote(_ key: UInt64, from writer: Writer) {
    change(key, writer) { lane, broken in
      guard lane.wrote < lane.items.count else { return }
      // The reader may have recorded the item already, before the writer continued.
      if lane.wrote >= lane.read { lane.untaken += lane.items[lane.wrote].leastCost }
      lane.wrote += 1
      guard let window = lane.window, !lane.isTooFull else { return }
      // Besides the window, one item and the headers of its fragments may be on their way. A reader
      // off the loop takes up to 64 KiB of items at once, and hands them out one by one.
      let item = lane.largest + (lane.largest / 1_000 + 1) * Wire.itemOverhead
      let most = window + item + 65_536
      guard lane.untaken > most else { return }
      lane.isTooFull = true
      broken.append(
        (.creditKept, "\(lane.untaken) bytes were written ahead of the reader, of at most \(most)"))
    }
  }

  /// Records that the writer is about to end the items, all of which it has written.
  package func finished(_ key: UInt64, from writer: Writer) {
    change(key, writer) { lane, _ in lane.isFinished = true }
  }

  // MARK: The reader

  /// Records that an item was read.
  package func read(_ key: UInt64, from writer: Writer, _ item: [UInt8]) {
    let print = Print(item)
    change(key, writer) { lane, broken in
      let index = lane.read
      lane.read += 1
      if lane.hasReadEnd { broken.append((.itemsInOrder, "item \(index) came after the end")) }
      guard index < lane.items.count else {
        broken.append((.itemsInOrder, "item \(index) was read, and only \(index) were written"))
        return
      }
      if index < lane.wrote { lane.untaken -= lane.items[index].leastCost }
      guard lane.items[index] != print else { return }
      let place = lane.items.firstIndex(of: print).map { "item \($0)" } ?? "none of the items"
      broken.append((.itemsInOrder, "\(place) was read in place of item \(index)"))
    }
    state.withLock { $0.itemsRead += 1 }
  }

  /// Records that the reader stops reading, so that the remaining items are dropped on arrival.
  package func dropsRest(_ key: UInt64, from writer: Writer) {
    change(key, writer) { lane, _ in lane.window = nil }
  }

  /// Records that the reader was told that there are no more items.
  package func readEnd(_ key: UInt64, from writer: Writer) {
    change(key, writer) { lane, broken in
      lane.hasReadEnd = true
      if !lane.isFinished {
        broken.append((.streamsComplete, "the items ended for the reader, not for the writer"))
      } else if lane.read < lane.wrote {
        broken.append(
          (.streamsComplete, "the items ended after \(lane.read), and \(lane.wrote) were written"))
      }
    }
    state.withLock { _ = $0.completed.insert(key) }
  }

  /// Records that reading has failed.
  ///
  /// The error's count of items has to be right. If it is the peer's response, all items that were
  /// written before it have to have been read.
  package func readError(_ key: UInt64, from writer: Writer, _ error: LongLinkError) {
    change(key, writer) { lane, broken in
      if let count = error.itemsReceived, count != lane.read {
        broken.append((.itemsInOrder, "\(lane.read) items were read, and the error says: \(error)"))
      }
      if error.code == .rejected, error.delivery == .answered, lane.read < lane.wrote {
        broken.append(
          (
            .streamsComplete,
            "\(lane.wrote) items were written before an error in band, \(lane.read) read: \(error)"
          ))
      }
    }
  }

  // MARK: Results

  /// The number of streams that were opened.
  package var openedCount: Int { state.withLock { $0.opened } }

  /// The number of streams of which the items of one or both sides were read to their end.
  package var completedCount: Int { state.withLock { $0.completed.count } }

  /// The number of items that were read.
  package var readCount: Int { state.withLock { $0.itemsRead } }

  /// The keys of the streams that have not ended for their callers, in order.
  package var open: [UInt64] { state.withLock { $0.open.sorted() } }

  /// When something was last recorded.
  package var lastEvent: LinkInstant { state.withLock { $0.lastEvent } }

  /// What is known about a stream, in words.
  func text(_ key: UInt64) -> String {
    state.withLock { state in
      Writer.allCases.compactMap { writer in
        state.lanes[LaneName(key: key, writer: writer)].map { lane in
          "\(writer.rawValue): \(lane.items.count) begun, \(lane.wrote) written, \(lane.read) read"
            + (lane.isFinished ? ", finished" : "") + (lane.hasReadEnd ? ", ended" : "")
        }
      }.joined(separator: "; ")
    }
  }

  /// The broken promises.
  package var broken: [(promise: OraclePromise, detail: String)] {
    state.withLock { $0.broken.map { (promise: $0.0, detail: $0.1) } }
  }

  private func update(_ body: (inout State) -> Void) {
    let now = now()
    state.withLock { state in
      state.lastEvent = now
      body(&state)
    }
  }

  private func change(
    _ key: UInt64, _ writer: Writer,
    _ body: (inout Lane, inout [(OraclePromise, String)]) -> Void
  ) {
    update { state in
      var found: [(OraclePromise, String)] = []
      body(&state.lanes[LaneName(key: key, writer: writer), default: Lane()], &found)
      state.broken += found.map {
        ($0.0, "stream \(key), items of the \(writer.rawValue): \($0.1)")
      }
    }
  }
}
