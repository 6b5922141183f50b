// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport
internal import Synchronization

/// All that the simulated loops share: time, links, listeners, names, and what is to happen.
///
/// It is a value behind one lock. Nothing in it calls out, and nothing that is kept in a hashed
/// collection is walked through in the collection's order.
struct NetworkState {
  /// What is to happen at some time.
  enum Event {
    /// An attempt to connect reaches its destination.
    case connect(link: Int)
    /// An attempt to connect that nobody has answered is made once more.
    case connectAgain(link: Int)
    /// The answer to it reaches the initiator; 0 for success.
    case answer(link: Int, errno: CInt)
    case packet(Packet, to: EndName, epoch: UInt32)
    /// What an end sent may by now be unacknowledged for longer than it wants to wait.
    case timeout(EndName)
    /// The end of a fault that lasts.
    case change(@Sendable (inout NetworkState) -> Void)
    /// Something that is called outside of the lock.
    case call(@Sendable () -> Void)
  }

  /// A socket that readiness can be told of.
  enum SocketName: Hashable {
    case end(EndName)
    case listener(Int)
  }

  /// A loop, and its sockets that may be ready.
  struct LoopRecord {
    let machine: Int
    /// True once its process has crashed: nothing that it does reaches the world.
    var isGhost = false
    /// Whether there may be something in `ready`, for those who look without the lock.
    let mayBeReady = Box(Atomic(false))
    var ready: [SocketName] = []
    var readyMembers: Set<SocketName> = []
  }

  var now = LinkInstant(nanoseconds: 0)
  var schedule = Schedule<Event>()
  var generator: SeededGenerator
  var trace: Trace
  /// Told of each entry, with the bytes that it is about. It must not ask the world for anything.
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

  /// The first of the ports that the system hands out by itself (RFC 6335, section 6).
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
    // No function whose last bits differ from one machine to another has a part in this.
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
    loops[loop].mayBeReady.value.store(true, ordering: .relaxed)
  }

  /// What the owner of a socket is to be told: what is there and of interest.
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
    loops[loop].mayBeReady.value.store(false, ordering: .relaxed)
    return false
  }

  /// Takes the sockets of a loop that may be ready, in the order in which they became so.
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
  /// Moves time forward, and makes happen what is due; returns what is to be called.
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
