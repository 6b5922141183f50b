// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport
internal import Synchronization

/// The state that simulated loops share: time, links, listeners, names and scheduled events.
///
/// It is a value behind one lock. It never calls outside code under the lock, and never depends on
/// the iteration order of a hashed collection.
struct NetworkState {
  /// A scheduled event.
  enum Event {
    /// An attempt to connect reaches its destination.
    case connect(link: Int)
    /// Another attempt to connect is made after one without an answer.
    case connectAgain(link: Int)
    /// The answer to an attempt reaches the initiator; 0 for success.
    case answer(link: Int, errno: CInt)
    case packet(Packet, to: EndName, epoch: UInt32)
    /// The timeout for an end's lost packets may have passed.
    case timeout(EndName)
    /// The end of a lasting fault.
    case change(@Sendable (inout NetworkState) -> Void)
    /// A function to call outside of the lock.
    case call(@Sendable () -> Void)
  }

  /// A socket that can become ready.
  enum SocketName: Hashable {
    case end(EndName)
    case listener(Int)
  }

  /// A loop, with those of its sockets that may be ready.
  struct LoopRecord {
    let machine: Int
    /// True once its process has crashed: its actions no longer affect the world.
    var isGhost = false
    /// Whether `ready` may contain sockets, readable without the lock.
    let signal = ReadySignal()
    var ready: [SocketName] = []
    var readyMembers: Set<SocketName> = []
  }

  var now = LinkInstant(nanoseconds: 0)
  var schedule = Schedule<Event>()
  var generator: SeededGenerator
  var trace: Trace
  /// Called with each entry and its bytes, under the lock, so that it must not use the world.
  var observer: (@Sendable (Trace.Entry, [UInt8]) -> Void)?

  var conditions = LinkConditions.normal
  var conditionsByAddress: [SocketAddress: LinkConditions] = [:]
  var conditionsByPath: [MachinePath: LinkConditions] = [:]
  var connectBehavior = ConnectBehavior.normal
  var connectBehaviorByAddress: [SocketAddress: ConnectBehavior] = [:]
  var hosts: [String: HostRecord] = [:]

  var links: [Int: NetworkLink] = [:]
  var linksMade = 0
  var listeners: [Int: NetworkListener] = [:]
  var listenersMade = 0
  var nextPort: UInt16 = NetworkState.firstPort
  var loops: [LoopRecord] = []
  var machines: [MachineRecord] = []
  var partitions: [Partition] = []
  var partitionsMade = 0
  /// The machine that listened at an address last.
  var machinesByAddress: [SocketAddress: Int] = [:]

  /// The first dynamic port (RFC 6335, section 6).
  static let firstPort: UInt16 = 49_152

  init(generator: SeededGenerator, traceCapacity: Int) {
    self.generator = generator
    trace = Trace(capacity: traceCapacity)
  }

  mutating func record(
    _ kind: Trace.Kind,
    _ name: EndName? = nil,
    value: Int = 0,
    digest: UInt32 = 0,
    address: SocketAddress? = nil,
    machine: Int? = nil,
    bytes: [UInt8] = []
  ) {
    let entry = Trace.Entry(
      time: now,
      kind: kind,
      link: name?.link ?? 0,
      side: name?.side ?? .initiator,
      value: UInt64(value),
      digest: digest,
      address: address,
      machine: machine ?? name.flatMap { end($0)?.machine }
    )
    trace.append(entry)
    observer?(entry, bytes)
  }

  mutating func draw(_ range: ClosedRange<Int>) -> Int {
    range.lowerBound == range.upperBound
      ? range.lowerBound : Int.random(in: range, using: &generator)
  }

  mutating func drawLatency(_ conditions: LinkConditions) -> Int64 {
    let least = max(conditions.latency.lowerBound.clampedNanoseconds, 0)
    let most = max(conditions.latency.upperBound.clampedNanoseconds, least)
    guard least < most else { return least }
    // Only arithmetic with the same result on every platform, to the last bit.
    switch conditions.spread {
    case .even:
      return Int64.random(in: least...most, using: &generator)
    case .bell:
      let quarter = (most - least) / 4
      return (0..<4).reduce(least) { sum, _ in
        sum + Int64.random(in: 0...quarter, using: &generator)
      }
    case .longTail:
      var share = Double(generator.next() >> 11) * 0x1p-53
      for _ in 0..<4 { share *= share }
      return least + Int64(Double(most - least) * share)
    }
  }
}

// MARK: - Readiness

extension NetworkState {
  /// Notes that a socket may have become ready.
  mutating func mark(_ name: SocketName) {
    guard let loop = owner(of: name) else { return }
    guard loops[loop].readyMembers.insert(name).inserted else { return }
    loops[loop].ready.append(name)
    loops[loop].signal.mayBeReady.store(true, ordering: .relaxed)
  }

  /// The readiness that the owner of a socket is interested in.
  func deliverable(_ name: SocketName) -> Readiness {
    switch name {
    case .end(let name):
      guard let end = end(name) else { return [] }
      return end.readiness.intersection(end.interest)
    case .listener(let number):
      guard let listener = listeners[number], !listener.queue.isEmpty else { return [] }
      return listener.interest.intersection(.read)
    }
  }

  /// Whether a loop has readiness to deliver.
  mutating func hasReady(_ loop: Int) -> Bool {
    while let first = loops[loop].ready.first {
      guard deliverable(first).isEmpty else { return true }
      loops[loop].ready.removeFirst()
      loops[loop].readyMembers.remove(first)
    }
    loops[loop].signal.mayBeReady.store(false, ordering: .relaxed)
    return false
  }

  /// Takes the sockets of a loop that may be ready, in the order in which they were marked.
  mutating func takeReady(_ loop: Int) -> [SocketName] {
    let names = loops[loop].ready
    loops[loop].ready.removeAll(keepingCapacity: true)
    loops[loop].readyMembers.removeAll(keepingCapacity: true)
    return names
  }

  mutating func setInterest(_ interest: Readiness, of name: SocketName) {
    switch name {
    case .end(let name):
      end(name)?.interest = interest
    case .listener(let number):
      listeners[number]?.interest = interest
    }
    mark(name)
  }

  private func owner(of name: SocketName) -> Int? {
    switch name {
    case .end(let name):
      return end(name)?.loop
    case .listener(let number):
      return listeners[number]?.loop
    }
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
