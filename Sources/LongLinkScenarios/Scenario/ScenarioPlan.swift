// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import LongLinkCore
internal import LongLinkTesting
internal import LongLinkTransport

/// Everything that a seed decides beforehand: processes, requests, pushes, streams and faults.
struct ScenarioPlan: Hashable, Sendable {
  /// A server process. Its name resolves to its address, perhaps after a dead address.
  struct Server: Hashable, Sendable {
    var name: String
    var address: SocketAddress
    var deadAddress: SocketAddress?
    var heartbeat: Heartbeat
    var maxInFlight: Int
    var drainSpread: Duration

    /// The address where the server's gateway accepts short links.
    var gateway: SocketAddress { address.withPort(8_080) }
  }

  /// A client process.
  struct Client: Hashable, Sendable {
    /// The indices of the servers, in order of preference.
    var servers: [Int]
    var heartbeat: Heartbeat
    var connectTimeout: Duration
    var reconnect: ReconnectPolicy
    var maxWaiting: Int
    var waits: Bool
    /// Whether the client has ways besides the long link: the servers' gateways.
    var hasShortLinks = false
    /// Whether the long link is among the client's ways.
    var hasLongLink = true
  }

  /// How a request is made.
  enum Style: Int, CaseIterable, Hashable, Sendable {
    /// `await`, in a task on the client's loop.
    case awaitedOnLoop
    /// `await`, in a task on another loop.
    case awaitedElsewhere
    /// The request is made with a completion handler on the client's loop.
    case completion
    /// The request is made with a handle, which a task awaits.
    case handle

    /// The styles whose requests reach the client's loop in the order of the calls.
    static let direct: [Style] = [.completion, .handle]
  }

  /// The behavior of a request's handler.
  enum Work: Hashable, Sendable {
    /// The handler responds immediately, without a task.
    case inline
    /// The handler responds after a delay.
    case delayed(Duration)
    /// The handler rejects the request with an application's code.
    case rejecting
    /// The handler waits until it is cancelled.
    case hanging
    /// There is no handler: the type is unknown.
    case missing
  }

  struct Request: Hashable, Sendable {
    /// A unique key, contained in the request's and the response's body.
    var key: UInt64
    var at: Duration
    var client: Int
    /// Whether a server sends it to a client.
    var isFromServer: Bool
    var style: Style
    var work: Work
    var size: Int
    var answerSize: Int
    var deadline: Duration?
    var cancelAfter: Duration?
    var notifiesCancel: Bool
    var waits: Bool?
    var priority: UInt32
    /// Whether the request may be retried after it may have run.
    var isIdempotent: Bool
    /// Whether the request is sent only after all earlier ordered requests.
    var isOrdered: Bool
  }

  /// A push of a client or a server.
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
    /// A random number that selects the victim when the fault is injected.
    var victim: UInt64
    /// A random number that selects the direction, the bit, or other details of the kind.
    var detail: UInt64
  }

  var conditions: LinkConditions
  var servers: [Server] = []
  var clients: [Client] = []
  var requests: [Request] = []
  var pushes: [PushPlan] = []
  var faults: [Fault] = []
  var streams: [StreamPlan] = []
  /// The stream windows of servers and clients, by their indices.
  var serverWindows: [StreamWindows] = []
  var clientWindows: [StreamWindows] = []
  /// The replacements of certificates; empty in a scenario without security.
  var replacements: [Replacement] = []
  /// The requests that run once; nil in a scenario without them.
  var once: OncePlan?
  /// The generator from which credentials are drawn.
  let credentialOrigin: SeededGenerator
  /// When the faults stop, counted from the beginning of the run.
  var healing: Duration

  /// Draws the plan of a seed.
  init(seed: UInt64, profile: FaultProfile, isSecured: Bool = false) {
    let origin = SeededGenerator(seed: seed)
    credentialOrigin = origin.forked(for: 0x5CE_0007)
    var dice = origin.forked(for: 0x5CE_0001)
    healing = .seconds(600) + .milliseconds(dice.int(0...30_000))
    conditions = dice.pick([.normal, .normal, .unsteady, Self.remote])
    drawServers(&dice)
    drawClients(&dice)
    var chance = origin.forked(for: 0x5CE_0002)
    drawFaults(profile, &chance)
    var work = origin.forked(for: 0x5CE_0003)
    drawWork(&work)
    var items = origin.forked(for: 0x5CE_0004)
    drawStreams(&items)
    if isSecured {
      var certificates = origin.forked(for: 0x5CE_0006)
      drawReplacements(&certificates)
    }
    if profile.hasOnce {
      var draws = origin.forked(for: 0x5CE_0008)
      once = OncePlan(
        clients: clients.count, healing: healing, faults: faults.map(\.at), &draws)
    }
    guard profile.hasShortLinks else { return }
    var ways = origin.forked(for: 0x5CE_0005)
    for index in clients.indices {
      clients[index].hasShortLinks = true
      clients[index].hasLongLink = !ways.chance(1, in: 4)
    }
  }

  /// Finds the plan of a stream by the key of its request.
  func stream(_ key: UInt64) -> StreamPlan? {
    if key > StreamPlan.lastKey { return .last(key) }
    guard key > StreamPlan.firstKey else { return nil }
    let index = Int(key - StreamPlan.firstKey) - 1
    return index < streams.count ? streams[index] : nil
  }

  /// The conditions of a long-distance path.
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
          waits: !dice.chance(1, in: 4)))
    }
  }
}

extension SeededGenerator {
  mutating func int(_ range: ClosedRange<Int>) -> Int {
    Int.random(in: range, using: &self)
  }

  /// Returns true with a probability of `part` in `whole`.
  mutating func chance(_ part: Int, in whole: Int) -> Bool {
    Int.random(in: 0..<whole, using: &self) < part
  }

  /// Returns one of the elements, all equally likely.
  mutating func pick<Element>(_ elements: [Element]) -> Element {
    elements[Int.random(in: 0..<elements.count, using: &self)]
  }
}
