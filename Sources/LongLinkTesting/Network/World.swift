internal import LongLinkCore
internal import LongLinkTransport

/// All that the simulated loops share: time, links, listeners, names, and what is to happen.
///
/// It is a value behind one lock. Nothing in it calls out, and nothing that is kept in a hashed
/// collection is walked through in the collection's order.
struct World {
  /// What is to happen at some time.
  enum Event {
    /// An attempt to connect reaches its destination.
    case connect(link: Int)
    /// The answer to it reaches the initiator; 0 for success.
    case answer(link: Int, errno: CInt)
    case packet(Packet, to: EndName, epoch: UInt32)
    /// What an end sent may by now be unacknowledged for longer than it wants to wait.
    case timeout(EndName)
    /// Something that is called outside of the lock.
    case call(@Sendable () -> Void)
  }

  /// A socket that readiness can be told of.
  enum SocketName: Hashable {
    case end(EndName)
    case listener(Int)
  }

  struct ReadyList {
    var names: [SocketName] = []
    var members: Set<SocketName> = []
  }

  var now = LinkInstant(nanoseconds: 0)
  var schedule = Schedule<Event>()
  var generator: SeededGenerator
  var trace: Trace

  var conditions = LinkConditions.normal
  var conditionsByAddress: [SocketAddress: LinkConditions] = [:]
  var connectBehavior = ConnectBehavior.normal
  var connectBehaviorByAddress: [SocketAddress: ConnectBehavior] = [:]
  var hosts: [String: HostRecord] = [:]

  var links: [Int: NetworkLink] = [:]
  var linksMade = 0
  var listeners: [Int: NetworkListener] = [:]
  var listenersMade = 0
  var nextPort: UInt16 = World.firstPort
  var ready: [ReadyList] = []

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
    address: SocketAddress? = nil
  ) {
    trace.append(
      Trace.Entry(
        time: now,
        kind: kind,
        link: name?.link ?? 0,
        side: name?.side ?? .initiator,
        value: UInt64(value),
        digest: digest,
        address: address
      )
    )
  }

  mutating func draw(_ range: ClosedRange<Int>) -> Int {
    range.lowerBound == range.upperBound
      ? range.lowerBound : Int.random(in: range, using: &generator)
  }

  mutating func drawLatency(_ conditions: LinkConditions) -> Int64 {
    let least = max(conditions.latency.lowerBound.clampedNanoseconds, 0)
    let most = max(conditions.latency.upperBound.clampedNanoseconds, least)
    return least == most ? least : Int64.random(in: least...most, using: &generator)
  }
}

// MARK: - Readiness

extension World {
  /// Notes that a socket may have become ready.
  mutating func mark(_ name: SocketName) {
    guard let loop = owner(of: name) else { return }
    guard ready[loop].members.insert(name).inserted else { return }
    ready[loop].names.append(name)
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
    while let first = ready[loop].names.first {
      guard deliverable(first).isEmpty else { return true }
      ready[loop].names.removeFirst()
      ready[loop].members.remove(first)
    }
    return false
  }

  /// Takes the sockets of a loop that may be ready, in the order in which they became so.
  mutating func takeReady(_ loop: Int) -> [SocketName] {
    let names = ready[loop].names
    ready[loop].names.removeAll(keepingCapacity: true)
    ready[loop].members.removeAll(keepingCapacity: true)
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

extension World {
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
      case .answer(let link, let errno): connectAnswered(link, errno)
      case .packet(let packet, let name, let epoch): arrived(packet, at: name, epoch: epoch)
      case .timeout(let name): acknowledgementTimedOut(name)
      case .call(let call): calls.append(call)
      }
    }
    return calls
  }
}
