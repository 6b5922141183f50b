// SPDX-License-Identifier: Apache-2.0

internal import LongLinkTesting

/// What a seed decides about the requests that run once.
struct OncePlan: Hashable, Sendable {
  /// Where servers keep their records.
  enum Keeping: Hashable, Sendable, CaseIterable {
    /// In the memory of each process, which is lost with it.
    case memory
    /// Each server in a store of its own, which outlives its process.
    case own
    /// All servers in one store, which outlives them.
    case shared
  }

  /// What the handler of such a request does.
  enum Work: Hashable, Sendable {
    /// It returns at once, without a task.
    case inline
    /// It returns after a time.
    case delayed(Duration)
    /// It rejects the request with a code that is kept.
    case rejecting
    /// The first run rejects the request with a code after which it may run again.
    case notFinal
    /// It returns after a time, and runs again where the end of an earlier run is not known.
    case runsAgain(Duration)
    /// It completes its record itself, and then throws.
    case completing
    /// It waits until it is cancelled.
    case hanging
    /// Its response is too large to be kept.
    case large
  }

  /// How the application identifies a request when it makes it again.
  enum Identification: Hashable, Sendable {
    /// By a ticket that it holds.
    case ticket
    /// By the bytes of a ticket that it has kept, as after its own restart.
    case keptTicket
    /// By a key of its own, so that each time it is a new request.
    case key
    /// By nothing: it makes the request once.
    case nothing
  }

  struct Request: Hashable, Sendable {
    /// A unique number, contained in the request's and the response's body.
    var number: UInt64
    /// The number of the request whose key it uses: its own, or another one's by mistake.
    var keyNumber: UInt64
    var at: Duration
    var client: Int
    var work: Work
    var size: Int
    var answerSize: Int
    var deadline: Duration?
    var cancelAfter: Duration?
    var identification: Identification
    /// The pauses after which the application makes it again, unless it has got its answer.
    var repeats: [Duration]
    /// Whether it makes it again even so, or at the same time.
    var isEager: Bool
  }

  var keeping = Keeping.memory
  var retention = Duration.seconds(10)
  var storeTimeout = Duration.seconds(1)
  /// How long a store waits for a sign of life of a process that runs requests.
  var lease = Duration.seconds(3)
  var maxRecords = 100_000
  /// The clients that have no principal.
  var anonymous: Set<Int> = []
  var requests: [Request] = []

  /// The numbers of requests are larger than this one, and those of other messages smaller.
  static let firstNumber: UInt64 = 0x5000_0000

  init(clients: Int, healing: Duration, faults: [Duration], _ dice: inout SeededGenerator) {
    keeping = dice.pick([.memory, .own, .shared, .shared])
    retention = .milliseconds(
      dice.int(dice.pick([5_000...10_000, 10_000...60_000, 30_000...60_000])))
    storeTimeout = .milliseconds(dice.int(200...5_000))
    lease = .milliseconds(dice.int(500...10_000))
    maxRecords = dice.pick([8, 40, 100_000, 100_000, 100_000])
    for client in 0..<clients where dice.chance(1, in: 4) { anonymous.insert(client) }
    var times: [Duration] = []
    for fault in faults where dice.chance(2, in: 3) {
      for _ in 0..<dice.int(1...8) {
        times.append(max(.zero, fault + .milliseconds(dice.int(-3_000...3_000))))
      }
    }
    while times.count < 90 { times.append(healing / 1_000 * dice.int(0...980)) }
    for time in times.sorted() { draw(at: time, clients, &dice) }
  }

  private mutating func draw(at time: Duration, _ clients: Int, _ dice: inout SeededGenerator) {
    let number = OncePlan.firstNumber + UInt64(requests.count) + 1
    let identification = dice.pick([
      Identification.ticket, .ticket, .keptTicket, .keptTicket, .key, .nothing,
    ])
    var pauses: [Duration] = []
    if identification != .nothing {
      for _ in 0..<dice.int(0...4) {
        pauses.append(.milliseconds(dice.int(dice.pick([0...500, 500...5_000, 5_000...90_000]))))
      }
    }
    // Now and then a key is used again for another payload.
    let other = dice.chance(1, in: 12) ? requests.suffix(4).randomElement(using: &dice) : nil
    let (client, work) = (dice.int(0...clients - 1), drawWork(&dice))
    requests.append(
      Request(
        number: number, keyNumber: other?.keyNumber ?? number, at: time,
        client: other?.client ?? client, work: other?.work ?? work,
        size: dice.int(ScenarioBody.headerLength...(dice.chance(1, in: 10) ? 90_000 : 300)),
        answerSize: dice.int(ScenarioBody.headerLength...(dice.chance(1, in: 10) ? 20_000 : 300)),
        deadline: dice.pick([nil, .milliseconds(dice.int(50...3_000)), .seconds(60)]),
        cancelAfter: dice.chance(1, in: 10) ? .milliseconds(dice.int(0...3_000)) : nil,
        identification: other == nil ? identification : .key, repeats: pauses,
        isEager: dice.chance(1, in: 3)))
  }

  private func drawWork(_ dice: inout SeededGenerator) -> Work {
    switch dice.int(0...99) {
    case ..<15: .inline
    case ..<40: .delayed(.milliseconds(dice.int(0...500)))
    case ..<55: .delayed(.milliseconds(dice.int(500...10_000)))
    // Perhaps longer than records are kept.
    case ..<60: .delayed(.milliseconds(dice.int(10_000...50_000)))
    case ..<66: .rejecting
    case ..<74: .notFinal
    case ..<82: .runsAgain(.milliseconds(dice.int(0...5_000)))
    case ..<90: .completing
    case ..<94: .hanging
    default: .large
    }
  }
}

extension OncePlan.Request {
  /// A client's request after all faults.
  init(last client: Int) {
    number = OncePlan.firstNumber + 0x10_0000 + UInt64(client)
    keyNumber = number
    at = .zero
    self.client = client
    work = .inline
    size = 100
    answerSize = 100
    deadline = .seconds(60)
    identification = .ticket
    repeats = []
    isEager = false
  }
}
