// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

/// The state that simulated loops share: time, links, listeners, names and scheduled events.
///
/// It is a value behind one lock. It never calls outside code under the lock, and never depends on
/// the iteration order of a hashed collection.
package struct NetworkState {
  /// A scheduled event.
  enum Event {
    /// An attempt to connect reaches its destination.
    case connect(link: Int)
    /// Another attempt to connect is made after one without an answer.
    case connectAgain(link: Int)
    /// The answer to an attempt reaches the initiator; `errno` is 0 for success.
    case answer(link: Int, errno: CInt)
    case packet(Packet, to: EndName, epoch: UInt32)
    /// The timeout for an end's lost packets may have passed.
    case timeout(EndName)
    /// A change of the state, such as the end of a lasting fault.
    case change(@Sendable (inout NetworkState) -> Void)
    /// A function to call outside of the lock.
    case call(@Sendable () -> Void)
  }

  /// The record of a loop: its machine, and the sockets that may be ready.
  struct LoopRecord {
    let machine: Int
    /// Whether the loop's process has crashed, so that its actions no longer affect the world.
    var isGhost = false
    var ready = ReadySockets()
  }

  var now = LinkInstant(nanoseconds: 0)
  /// The date at time 0, in seconds since 1970: initially the begin of 2026.
  var calendarOrigin: Int64 = 1_767_225_600
  var schedule = Schedule<Event>()
  var generator: SeededGenerator
  var trace: Trace
  /// Whether the trace hashes written bytes. Encrypted bytes differ from run to run.
  package var hashesBytes = true
  /// Called under the lock with each entry and its bytes. It must not use the world.
  var observer: (@Sendable (Trace.Entry, [UInt8]) -> Void)?

  var conditions = NetworkConditions()
  var addresses = AddressBook()

  var links: [Int: NetworkLink] = [:]
  var linksMade = 0
  var loops: [LoopRecord] = []
  var machines: [MachineRecord] = []
  var partitions = NetworkPartitions()

  init(generator: SeededGenerator, traceCapacity: Int) {
    self.generator = generator
    trace = Trace(capacity: traceCapacity)
  }

  mutating func record(
    _ kind: Trace.Kind, _ name: EndName? = nil, value: Int = 0, digest: UInt32 = 0,
    address: SocketAddress? = nil, machine: Int? = nil, isFull: Bool = false, bytes: [UInt8] = []
  ) {
    let entry = Trace.Entry(
      time: now,
      kind: kind,
      link: name?.link ?? 0,
      side: name?.side ?? .initiator,
      value: UInt64(value),
      digest: digest,
      address: address,
      machine: machine ?? name.flatMap { end($0)?.machine },
      isFull: isFull
    )
    trace.append(entry)
    observer?(entry, bytes)
  }

  mutating func draw(_ range: ClosedRange<Int>) -> Int {
    range.lowerBound == range.upperBound
      ? range.lowerBound : Int.random(in: range, using: &generator)
  }
}

// MARK: - Readiness

extension NetworkState {
  /// Records that a socket may have become ready.
  mutating func mark(_ name: SocketName) {
    if let loop = owner(of: name) { loops[loop].ready.insert(name) }
  }

  /// The readiness that can be delivered to a socket's owner: current, and of interest to it.
  func deliverable(_ name: SocketName) -> Readiness {
    switch name {
    case .end(let name):
      guard let end = end(name) else { return [] }
      let hasFailed = end.reportsFailure && end.hasReadEnd && end.error != nil
      let failure: Readiness = hasFailed ? .read : []
      return end.readiness.intersection(end.interest).union(failure)
    case .listener(let number):
      guard let listener = addresses.listeners[number], !listener.queue.isEmpty else { return [] }
      return listener.interest.intersection(.read)
    }
  }

  /// Whether a loop has readiness to deliver.
  mutating func hasReady(_ loop: Int) -> Bool {
    while let first = loops[loop].ready.first {
      guard deliverable(first).isEmpty else { return true }
      loops[loop].ready.removeFirst()
    }
    return false
  }

  mutating func setInterest(_ interest: Readiness, of name: SocketName) {
    switch name {
    case .end(let name):
      end(name)?.interest = interest
    case .listener(let number):
      addresses.listeners[number]?.interest = interest
    }
    mark(name)
  }

  private func owner(of name: SocketName) -> Int? {
    switch name {
    case .end(let name):
      return end(name)?.loop
    case .listener(let number):
      return addresses.listeners[number]?.loop
    }
  }
}

// MARK: - Names

extension NetworkState {
  /// Looks a name up, and later calls `deliver` with the result, outside of the lock.
  mutating func lookUp(
    _ host: String,
    port: UInt16,
    _ deliver: @escaping @Sendable (Result<[SocketAddress], ResolveError>) -> Void
  ) {
    let found = addresses.lookUp(host, port: port)
    schedule.add(.call { deliver(found.result) }, at: now + found.delay)
    record(.lookedUp, value: (try? found.result.get().count) ?? 0)
  }
}

// MARK: - Time

extension NetworkState {
  /// Advances time and performs due events; returns the functions to call outside of the lock.
  mutating func advance(to time: LinkInstant) -> [@Sendable () -> Void] {
    if time > now {
      now = time
      record(.timeMoved)
    }
    var calls: [@Sendable () -> Void] = []
    while let event = schedule.popFirst(at: now) {
      switch event {
      case .connect(let link): connectArrived(link)
      case .connectAgain(let link): sendConnect(link)
      case .answer(let link, let errno): connectAnswered(link, errno)
      case .packet(let packet, let name, let epoch): arrived(packet, at: name, epoch: epoch)
      case .timeout(let name): acknowledgementTimedOut(name)
      case .change(let change): change(&self)
      case .call(let call): calls.append(call)
      }
    }
    return calls
  }
}
