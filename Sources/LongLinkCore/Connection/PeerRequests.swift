// SPDX-License-Identifier: Apache-2.0

/// The peer's requests: those that have no answer yet, and those whose handlers go on though nobody
/// waits for them any more.
///
/// Both count against what the peer may have at once, in number and in bytes. So a peer cannot make
/// room by giving requests up while their handlers still run.
struct PeerRequests: ~Copyable {
  /// A request that is not yet answered to its end.
  struct Request: Equatable, Sendable {
    enum State: Equatable, Sendable {
      /// Not all of its fragments have come.
      case assembling
      /// Its handler has it.
      case running
      /// Its response is on its way.
      case responding
    }

    var state: State
    /// Whether it is to be answered before its handler has returned.
    var isOutlived = false
    /// How urgent its response is.
    var priority: UInt32 = 0
    /// Bytes that its handler holds.
    var bytes = 0
  }

  private var table: SerialTable<Request>
  /// Requests of which not all fragments have come.
  private var assembling = 0
  /// Requests that the peer waits for no longer, and whose handlers have not returned.
  private(set) var outlived = 0
  /// Bytes of requests whose handlers have not returned, and of those among them that are outlived.
  private(set) var bytes = 0
  private(set) var outlivedBytes = 0

  init(serialMix: UInt32) {
    table = SerialTable(mix: serialMix)
  }

  /// Requests that are not yet answered.
  var count: Int { table.count }
  var isEmpty: Bool { table.isEmpty }
  /// Those of them that a handler has had.
  var handled: Int { table.count - assembling }
  /// Places in the table, taken or not.
  var capacity: Int { table.capacity }

  func contains(_ serial: UInt32) -> Bool { table.contains(serial) }

  subscript(serial: UInt32) -> Request? { table[serial] }

  /// Whether one more would be too many.
  @inline(__always)
  func isFull(at limit: Int) -> Bool { table.count + outlived >= limit }

  // MARK: Beginning

  /// The first fragment of a request came.
  mutating func begin(_ serial: UInt32) {
    table.insert(Request(state: .assembling), for: serial)
    assembling += 1
  }

  /// The last fragment of a request came: its handler gets it.
  mutating func complete(_ serial: UInt32, holding count: Int) {
    assembling -= 1
    bytes += count
    _ = table.update(serial) {
      $0.state = .running
      $0.bytes = count
    }
  }

  /// A request came whole: its handler gets it.
  @inline(__always)
  mutating func run(_ serial: UInt32, holding count: Int) {
    bytes += count
    table.insert(Request(state: .running, bytes: count), for: serial)
  }

  /// A request is refused of which not all fragments have come.
  mutating func abandon(_ serial: UInt32) {
    if table.remove(serial) != nil { assembling -= 1 }
  }

  // MARK: Answering

  mutating func setPriority(_ priority: UInt32, of serial: UInt32) {
    _ = table.update(serial) { $0.priority = priority }
  }

  /// A request is to be answered before its handler has returned.
  mutating func setOutlived(_ serial: UInt32) {
    _ = table.update(serial) { $0.isOutlived = true }
  }

  /// A request has its answer, or never gets one.
  @inline(__always)
  mutating func answered(_ serial: UInt32) {
    if let request = table.remove(serial) { handlerReturned(from: request) }
  }

  /// A request has an answer that waits to be sent.
  mutating func beginAnswer(_ serial: UInt32) {
    guard let request = table[serial] else { return }
    handlerReturned(from: request)
    _ = table.update(serial) { $0.state = .responding }
  }

  /// The answer that waited has been encoded to its end.
  mutating func endAnswer(_ serial: UInt32) {
    table.remove(serial)
  }

  /// Mostly the handler of a request that has its answer has returned.
  @inline(__always)
  private mutating func handlerReturned(from request: Request) {
    if request.isOutlived { outlive(request) } else { bytes -= request.bytes }
  }

  // MARK: Ends without an answer

  /// The peer wants no answer to a request; nil when none is owed.
  mutating func cancel(_ serial: UInt32) -> Request? {
    guard let request = table.remove(serial) else { return nil }
    switch request.state {
    case .assembling: assembling -= 1
    case .running: outlive(request)
    case .responding: break
    }
    return request
  }

  /// The connection ends: no answer is owed any more.
  mutating func cancelAll() {
    for serial in table.keys {
      if let request = table[serial], request.state == .running { outlive(request) }
    }
    table.removeAll()
    assembling = 0
  }

  private mutating func outlive(_ request: Request) {
    outlived += 1
    outlivedBytes += request.bytes
  }

  /// The handler of a request has returned to which no answer was owed any more.
  mutating func handlerReturned(bytes count: Int) {
    outlived -= 1
    outlivedBytes -= count
    bytes -= count
  }

  mutating func releaseStorage() {
    table.releaseStorage(over: 16)
  }
}
