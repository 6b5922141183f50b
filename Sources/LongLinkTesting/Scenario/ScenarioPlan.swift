// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import LongLinkCore
internal import LongLinkTransport

/// All that a seed decides beforehand: who there is, what is asked and what goes wrong, and when.
struct ScenarioPlan: Hashable, Sendable {
  /// A server process. Its name has one address at which it listens, and perhaps a dead one before.
  struct Server: Hashable, Sendable {
    var name: String
    var address: SocketAddress
    var deadAddress: SocketAddress?
    var heartbeat: Heartbeat
    var maxInFlight: Int
    var drainSpread: Duration
  }

  /// A client process.
  struct Client: Hashable, Sendable {
    /// The servers by their places, the first choice first.
    var servers: [Int]
    var heartbeat: Heartbeat
    var connectTimeout: Duration
    var reconnect: ReconnectPolicy
    var maxWaiting: Int
    var offline: OfflinePolicy
  }

  /// How a request is made.
  enum Style: Int, CaseIterable, Hashable, Sendable {
    /// `await`, in a task on the client's loop.
    case awaitedOnLoop
    /// `await`, in a task on another loop.
    case awaitedElsewhere
    /// With a completion handler on the client's loop.
    case completion
    /// With a handle that is awaited.
    case handle

    /// Those by which requests reach the client's loop in the order of their calls.
    static let direct: [Style] = [.completion, .handle]
  }

  /// What a request's handler does.
  enum Work: Hashable, Sendable {
    /// It answers at once, without a task.
    case inline
    /// It answers after a delay.
    case delayed(Duration)
    /// It rejects with an application's code.
    case rejecting
    /// It waits until it is cancelled.
    case hanging
    /// There is none: the type is unknown.
    case missing
  }

  struct Request: Hashable, Sendable {
    /// Unique in the scenario; it stands in the body, and in the answer's.
    var key: UInt64
    var at: Duration
    var client: Int
    /// Whether a server asks the client instead.
    var isFromServer: Bool
    var style: Style
    var work: Work
    var size: Int
    var answerSize: Int
    var deadline: Duration?
    var cancelAfter: Duration?
    var notifiesCancel: Bool
    var offline: OfflinePolicy?
    var priority: UInt32
    /// Whether it may be sent again when it may have run.
    var isIdempotent: Bool
    /// Whether it leaves behind the ordered ones before it.
    var isOrdered: Bool
  }

  /// A one-way message.
  struct PushPlan: Hashable, Sendable {
    var at: Duration
    var client: Int
    var isFromServer: Bool
    var size: Int
  }

  struct Fault: Hashable, Sendable {
    var kind: FaultKind
    var at: Duration
    var lasting: Duration
    /// Chooses the victim among those that are there when the time has come.
    var victim: UInt64
    /// Chooses the direction, the bit, or whatever else the kind leaves open.
    var detail: UInt64
  }

  var conditions: LinkConditions
  var servers: [Server] = []
  var clients: [Client] = []
  var requests: [Request] = []
  var pushes: [PushPlan] = []
  var faults: [Fault] = []
  /// When faults stop.
  var healing: Duration

  /// Draws the plan of a seed.
  init(seed: UInt64, profile: FaultProfile) {
    let origin = SeededGenerator(seed: seed)
    var dice = origin.forked(for: 0x5CE_0001)
    healing = .seconds(600) + .milliseconds(dice.int(0...30_000))
    conditions = dice.pick([.normal, .normal, .unsteady, Self.remote])
    drawServers(&dice)
    drawClients(&dice)
    var chance = origin.forked(for: 0x5CE_0002)
    drawFaults(profile, &chance)
    var work = origin.forked(for: 0x5CE_0003)
    drawWork(&work)
  }

  /// A path across the country.
  private static let remote = LinkConditions(
    latency: .milliseconds(20) ... .milliseconds(90), window: 131_072)

  private mutating func drawServers(_ dice: inout SeededGenerator) {
    for index in 0..<dice.int(1...3) {
      let host = UInt8(index + 1)
      let interval = dice.pick([2_000, 5_000, 10_000, 30_000])
      servers.append(
        Server(
          name: "server-\(index)",
          address: .ipv4(10, 0, 0, host, port: 7_000),
          deadAddress: dice.chance(1, in: 4) ? .ipv4(10, 0, 1, host, port: 7_000) : nil,
          heartbeat: Heartbeat(
            interval: .milliseconds(interval), timeout: .milliseconds(dice.int(500...interval))),
          maxInFlight: dice.pick([2, 8, 64, 1_024]),
          drainSpread: .milliseconds(dice.pick([0, 500, 5_000]))))
    }
  }

  private mutating func drawClients(_ dice: inout SeededGenerator) {
    for _ in 0..<dice.int(1...3) {
      let interval = dice.pick([3_000, 6_000, 15_000, 30_000])
      let first = dice.pick([200, 1_000, 3_000])
      clients.append(
        Client(
          servers: Array(servers.indices).shuffled(using: &dice),
          heartbeat: Heartbeat(
            interval: .milliseconds(interval), timeout: .milliseconds(dice.int(500...interval))),
          connectTimeout: .milliseconds(dice.int(2_000...10_000)),
          reconnect: ReconnectPolicy(
            afterClose: .milliseconds(first),
            afterLostHeartbeat: .milliseconds(first * dice.int(1...5)),
            afterRefused: .milliseconds(first),
            cap: .milliseconds(first * dice.pick([1, 4, 10]))),
          maxWaiting: dice.pick([3, 20, 10_000]),
          offline: dice.chance(1, in: 4) ? .failUnlessConnecting : .wait))
    }
  }
}

extension SeededGenerator {
  mutating func int(_ range: ClosedRange<Int>) -> Int {
    Int.random(in: range, using: &self)
  }

  /// True in `part` of `whole` draws.
  mutating func chance(_ part: Int, in whole: Int) -> Bool {
    Int.random(in: 0..<whole, using: &self) < part
  }

  /// One of several, each as likely as the others.
  mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[Int.random(in: 0..<elements.count, using: &self)]
  }
}
