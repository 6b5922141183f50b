// SPDX-License-Identifier: Apache-2.0

/// The peer's requests: those without a response, and those that have ended while their handlers
/// still run ("outlived").
///
/// Both count towards the peer's limits of concurrent requests and bytes. So a peer cannot make
/// room by cancelling requests whose handlers still run.
struct PeerRequests: ~Copyable {
  /// A request whose response is not yet encoded completely.
  struct Request: Equatable, Sendable {
    enum State: Equatable, Sendable {
      /// Some of its fragments are missing.
      case assembling
      /// Its handler runs.
      case running
      /// Its response is queued.
      case responding
    }

    var state: State
    /// Whether it will end before its handler returns.
    var isOutlived = false
    /// The priority of its response.
    var priority: UInt32 = 0
    /// The number of bytes that its handler holds.
    var bytes = 0
  }

  private var table: SerialTable<Request>
  /// The number of requests with missing fragments.
  private var assembling = 0
  /// The number of requests that ended before their handlers returned.
  private(set) var outlived = 0
  /// The bytes of all requests whose handlers have not returned, and those of outlived requests.
  private(set) var bytes = 0
  private(set) var outlivedBytes = 0

  init(serialMix: UInt32) {
    table = SerialTable(mix: serialMix)
  }

  /// The number of unanswered requests.
  var count: Int { table.count }
  var isEmpty: Bool { table.isEmpty }
  /// The number of unanswered requests that were passed to a handler.
  var handled: Int { table.count - assembling }
  /// The number of slots in the table.
  var capacity: Int { table.capacity }

  @inline(__always)
  func contains(_ serial: UInt32) -> Bool { slot(of: serial) != nil }

  subscript(serial: UInt32) -> Request? { table[serial] }

  /// The slot of a request, valid until another one is added or removed.
  @inline(__always)
  func slot(of serial: UInt32) -> Int? { table.slot(of: serial) }
  subscript(slot: Int) -> Request { table[slot: slot] }

  /// Whether one more would be too many.
  @inline(__always)
  func isFull(at limit: Int) -> Bool { table.count + outlived >= limit }

  // MARK: Beginning

  /// Notes the first fragment of a request.
  mutating func begin(_ serial: UInt32) {
    table.insert(Request(state: .assembling), for: serial)
    assembling += 1
  }

  /// Notes the last fragment of a request, which is now passed to its handler.
  mutating func complete(_ serial: UInt32, holding count: Int) {
    assembling -= 1
    bytes += count
    _ = table.update(serial) {
      $0.state = .running
      $0.bytes = count
    }
  }

  /// Notes a request that arrived in one frame and is now passed to its handler.
  @inline(__always)
  mutating func run(_ serial: UInt32, holding count: Int) {
    bytes += count
    table.insert(Request(state: .running, bytes: count), for: serial)
  }

  /// Removes a request that is refused before all of its fragments have arrived.
  mutating func abandon(_ serial: UInt32) {
    if table.remove(serial) != nil { assembling -= 1 }
  }

  // MARK: Responding

  mutating func setPriority(_ priority: UInt32, of serial: UInt32) {
    _ = table.update(serial) { $0.priority = priority }
  }

  /// Notes that a request will end before its handler returns.
  mutating func setOutlived(_ serial: UInt32) {
    _ = table.update(serial) { $0.isOutlived = true }
  }

  /// Removes a request whose response was encoded, or that gets none.
  mutating func answered(_ serial: UInt32) {
    if let slot = slot(of: serial) { answered(at: slot) }
  }

  /// The same for the request in a slot.
  @inline(__always)
  mutating func answered(at slot: Int) {
    handlerReturned(from: table.remove(slot: slot))
  }

  /// Notes that the response to a request was queued.
  mutating func beginAnswer(_ serial: UInt32) {
    guard let request = table[serial] else { return }
    handlerReturned(from: request)
    _ = table.update(serial) { $0.state = .responding }
  }

  /// Notes that a queued response has been encoded completely.
  mutating func endAnswer(_ serial: UInt32) {
    table.remove(serial)
  }

  /// Updates the counts for a request that has its response: unless outlived, its handler returned.
  @inline(__always)
  private mutating func handlerReturned(from request: Request) {
    if request.isOutlived { outlive(request) } else { bytes -= request.bytes }
  }

  // MARK: Ends without a response

  /// Removes and returns a request that the peer cancelled; nil if no response is owed to it.
  mutating func cancel(_ serial: UInt32) -> Request? {
    guard let request = table.remove(serial) else { return nil }
    switch request.state {
    case .assembling: assembling -= 1
    case .running: outlive(request)
    case .responding: break
    }
    return request
  }

  /// Removes all requests, because the connection ends and no response is owed any more.
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

  /// Notes the return of an outlived request's handler.
  mutating func handlerReturned(bytes count: Int) {
    outlived -= 1
    outlivedBytes -= count
    bytes -= count
  }

  mutating func releaseStorage() {
    table.releaseStorage(over: 16)
  }
}
