// SPDX-License-Identifier: Apache-2.0

/// One of the peer's requests. The peer can use a serial again once its request has ended, also
/// while the handler still runs; no two requests have the same number at a time.
package struct InboundID: Hashable, Sendable {
  package let serial: UInt32
  /// The number of the request in the order of arrival, from 1; after 2³² - 1, 1 again.
  package let number: UInt32

  package init(serial: UInt32, number: UInt32) {
    self.serial = serial
    self.number = number
  }
}

/// How a request of the peer ends.
package enum InboundEnding: Equatable, Sendable {
  /// Its handler has returned, and the response is encoded.
  case answered
  /// The request gets a response before any handler was called.
  case refused
  /// The peer has cancelled it.
  case cancelled
  /// The request gets a response in place of its handler, which still runs.
  case interrupted
  /// The connection has ended.
  case abandoned
}

/// The peer's requests on one connection, each from its first frame until it has ended and its
/// handler has returned.
///
/// A request whose handler still runs when it ends is outlived: it counts towards the peer's limits
/// of concurrent requests and bytes until the handler returns. So a peer cannot make room by
/// cancelling requests whose handlers still run.
///
/// The payload of a row is the driver's part: the task that runs the handler, and its stream. A
/// request that a synchronous handler answers has none.
@safe package struct InboundTable: ~Copyable {
  @safe struct Row {
    enum State: Equatable {
      /// Some of its fragments are missing.
      case assembling
      /// Its handler runs.
      case running
      /// Its response is queued.
      case responding
    }

    var state: State
    /// The priority of its response.
    var priority: UInt32 = 0
    fileprivate(set) var number: UInt32 = 0
    /// The number of bytes that its handler holds.
    fileprivate(set) var bytes: UInt32 = 0
    /// The driver's part, which the row retains. Unmanaged, so that rows are copied as bytes.
    fileprivate var payload: Unmanaged<AnyObject>?

    fileprivate init(_ state: State, number: UInt32 = 0, bytes: UInt32 = 0) {
      self.state = state
      self.number = number
      self.bytes = bytes
      unsafe payload = nil
    }

    fileprivate var work: AnyObject? { unsafe payload?.takeUnretainedValue() }
  }

  /// The requests that have not ended, by serial.
  private var rows: SerialTable<Row>
  /// The requests that ended before their handlers returned, by number.
  private var outlivedRows = SerialTable<Row>()
  /// The number of requests with missing fragments.
  private var assembling = 0
  /// The number of the request that was passed to a handler last.
  var newest: UInt32 = 0
  /// The numbers of the requests whose handlers ran when the numbers began anew.
  private var older: Set<UInt32> = []
  /// The bytes of all requests whose handlers have not returned, and those of outlived requests.
  private(set) var bytes = 0
  private(set) var outlivedBytes = 0

  init(serialMix: UInt32) {
    rows = SerialTable(mix: serialMix)
  }

  deinit {
    for serial in rows.keys { unsafe rows[serial]?.payload?.release() }
    for number in outlivedRows.keys { unsafe outlivedRows[number]?.payload?.release() }
  }

  /// The number of requests that have not ended.
  package var count: Int { rows.count }
  var isEmpty: Bool { rows.isEmpty }
  /// The number of requests that have not ended and were passed to a handler.
  var handled: Int { rows.count - assembling }
  /// The number of requests that ended before their handlers returned.
  package var outlived: Int { outlivedRows.count }
  /// The number of slots in the tables.
  var capacity: Int { rows.capacity + outlivedRows.capacity }

  @inline(__always)
  func contains(_ serial: UInt32) -> Bool { slot(of: serial) != nil }

  func state(of serial: UInt32) -> Row.State? { slot(of: serial).map { rows[slot: $0].state } }

  /// The slot of a request, valid until another one begins or ends.
  @inline(__always)
  func slot(of serial: UInt32) -> Int? { rows.slot(of: serial) }
  func priority(at slot: Int) -> UInt32 { rows[slot: slot].priority }

  /// The slot of a request whose handler runs, and which has not ended.
  @inline(__always)
  func running(_ id: InboundID) -> Int? {
    guard let slot = rows.slot(of: id.serial), rows[slot: slot].number == id.number,
      rows[slot: slot].state == .running
    else { return nil }
    return slot
  }

  /// Whether one more request would exceed the limit.
  @inline(__always)
  func isFull(at limit: Int) -> Bool { rows.count + outlivedRows.count >= limit }

  // MARK: Beginning

  /// Notes the first fragment of a request.
  mutating func begin(_ serial: UInt32) {
    rows.insert(Row(.assembling), for: serial)
    assembling += 1
  }

  /// Notes the last fragment of a request, which is now passed to its handler.
  mutating func complete(_ serial: UInt32, holding count: Int) {
    assembling -= 1
    bytes += count
    let number = nextNumber()
    _ = rows.update(serial) {
      $0.state = .running
      $0.number = number
      $0.bytes = UInt32(count)
    }
  }

  /// Notes a request that arrived in one frame and is now passed to its handler.
  @inline(__always)
  mutating func run(_ serial: UInt32, holding count: Int) {
    bytes += count
    rows.insert(Row(.running, number: nextNumber(), bytes: UInt32(count)), for: serial)
  }

  @inline(__always)
  private mutating func nextNumber() -> UInt32 {
    newest &+= 1
    if newest == 0 || !outlivedRows.isEmpty || !older.isEmpty { skipNumbersInUse() }
    return newest
  }

  private mutating func skipNumbersInUse() {
    while newest == 0 || outlivedRows.contains(newest) || older.contains(newest) {
      if newest == 0 { older = Set(rows.keys.compactMap { rows[$0]?.number }) }
      newest &+= 1
    }
  }

  /// Gives the response to a request the priority of the request.
  package mutating func setPriority(_ priority: UInt32, of serial: UInt32) {
    _ = rows.update(serial) { $0.priority = priority }
  }

  // MARK: The driver's part

  /// Keeps the driver's part of a request whose handler runs. Returns false if the request has
  /// ended.
  package mutating func setPayload(_ payload: AnyObject, of id: InboundID) -> Bool {
    guard let slot = running(id) else { return false }
    unsafe rows[slot: slot].payload?.release()
    unsafe rows[slot: slot].payload = .passRetained(payload)
    return true
  }

  /// The driver's part of a request that has not ended.
  package func payload(of serial: UInt32) -> AnyObject? {
    rows.slot(of: serial).flatMap { rows[slot: $0].work }
  }

  /// The driver's part of an outlived request.
  package func payload(ofOutlived id: InboundID) -> AnyObject? { outlivedRows[id.number]?.work }

  /// The driver's parts of all requests that have not ended, in the order of their serials.
  package var runningPayloads: [AnyObject] { rows.keys.sorted().compactMap { rows[$0]?.work } }

  /// The driver's parts of all outlived requests, in the order of their arrival.
  package var outlivedPayloads: [AnyObject] {
    // The numbers count up, and wrap.
    let order = outlivedRows.keys.sorted { newest &- $0 > newest &- $1 }
    return order.compactMap { outlivedRows[$0]?.work }
  }

  // MARK: Ending

  /// Ends a request in the given way; returns its row as it was, or nil if it had ended.
  @discardableResult
  mutating func conclude(_ serial: UInt32, with ending: InboundEnding) -> Row? {
    rows.slot(of: serial).map { conclude(at: $0, with: ending) }
  }

  /// Ends the request in a slot.
  @inline(__always)
  @discardableResult
  mutating func conclude(at slot: Int, with ending: InboundEnding) -> Row {
    let row = rows.remove(slot: slot)
    switch row.state {
    case .assembling: assembling -= 1
    case .running: left(row, with: ending)
    case .responding: break
    }
    return row
  }

  /// Notes that the response to a request is queued, and ends the request in the given way once
  /// `sent` is called.
  mutating func respond(at slot: Int, with ending: InboundEnding) {
    left(rows[slot: slot], with: ending)
    rows[slot: slot].state = .responding
    unsafe rows[slot: slot].payload = nil
  }

  /// Notes that a queued response has been encoded completely.
  mutating func sent(_ serial: UInt32) {
    rows.remove(serial)
  }

  /// Accounts for the handler of a request that has ended: it has returned, or it outlives it.
  private mutating func left(_ row: Row, with ending: InboundEnding) {
    switch ending {
    case .answered, .refused: handlerReturned(from: row)
    case .cancelled, .interrupted, .abandoned: outlive(row)
    }
  }

  private mutating func outlive(_ row: Row) {
    outlivedBytes += Int(row.bytes)
    outlivedRows.insert(row, for: row.number)
  }

  /// Ends all requests, because the connection ends.
  mutating func abandonAll() {
    for serial in rows.keys { conclude(serial, with: .abandoned) }
    rows.removeAll()
  }

  /// Notes that the handler of an outlived request has returned. `respond` notes it, too.
  package mutating func handlerReturned(from id: InboundID) { handlerReturned(id.number) }

  /// Notes that the newest request was not passed to its handler after all.
  mutating func newestReturned() { handlerReturned(newest) }

  private mutating func handlerReturned(_ number: UInt32) {
    guard let row = outlivedRows.remove(number) else { return }
    outlivedBytes -= Int(row.bytes)
    handlerReturned(from: row)
    outlivedRows.releaseStorage(over: 16)
  }

  @inline(__always)
  private mutating func handlerReturned(from row: Row) {
    bytes -= Int(row.bytes)
    unsafe row.payload?.release()
  }

  mutating func releaseStorage() {
    rows.releaseStorage(over: 16)
  }
}
