// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTesting

/// The options of a storm: clients lose one server at the same moment, and it comes back.
struct StormOptions: Equatable, Sendable {
  var clients: Int
  /// How long connects are refused after the loss.
  var outage: Duration
  /// The time over which clients should spread.
  var window: Duration
  var seed: UInt64

  /// Connects per second if all clients come evenly within the window.
  var evenRate: Double { Double(clients) / (window / .seconds(1)) }
}

/// The number of connects in each second after the loss.
struct StormCurve: Equatable, Sendable {
  /// Attempts, including refused ones.
  private(set) var attempts: [Int] = []
  private(set) var accepted: [Int] = []
  /// The time from the loss until the last client was connected.
  private(set) var allBack = Duration.zero

  mutating func addAttempt(at time: Duration, isAccepted: Bool, clients: Int = 1) {
    let second = Int(time / .seconds(1))
    while attempts.count <= second {
      attempts.append(0)
      accepted.append(0)
    }
    attempts[second] += clients
    if isAccepted {
      accepted[second] += clients
      allBack = max(allBack, time)
    }
  }

  var peakAttempts: Int { attempts.max() ?? 0 }
  var peakAccepted: Int { accepted.max() ?? 0 }
}

/// A storm under one policy. Clients are independent of each other because the server accepts all
/// of them, so each is followed separately from the loss to its return.
enum Storm {
  static func run(_ options: StormOptions, _ policy: StormPolicy) -> StormCurve {
    var generator = SeededGenerator(seed: options.seed)
    var curve = StormCurve()
    switch policy {
    case .product(_, let reconnect):
      for _ in 0..<options.clients {
        var client = StormClient(reconnect, using: &generator)
        client.run(outage: options.outage, using: &generator) { time, isAccepted in
          curve.addAttempt(at: time, isAccepted: isAccepted)
        }
      }
    case .none, .fixed, .exponential:
      // Without random delays all clients do the same.
      let copies = policy == .none ? options.clients : 1
      for _ in 0..<options.clients / copies {
        var time = Duration.zero
        var attempt = 0
        var isBack = false
        while !isBack {
          time += policy.delay(before: attempt, window: options.window, using: &generator)
          isBack = time >= options.outage
          curve.addAttempt(at: time, isAccepted: isBack, clients: copies)
          attempt += 1
        }
      }
    }
    return curve
  }
}

/// One client of a storm: the decisions of the product, and nothing else.
private struct StormClient {
  private var machine: LinkMachine

  /// How long a connect takes to be refused, in nanoseconds.
  private static let refusal: Int64 = 1_000_000
  /// A time that is never reached, in nanoseconds.
  private static let longTime: Int64 = 1 << 60

  /// Makes a client whose link has worked, and is lost at instant 0.
  init(_ policy: ReconnectPolicy, using generator: inout SeededGenerator) {
    machine = LinkMachine(
      servers: [ServerList.Entry(priority: 0, weight: 1)],
      settings: LinkMachine.Settings(
        reconnect: policy, connectTimeout: StormClient.longTime,
        lingering: StormClient.longTime))
    let start = LinkInstant(nanoseconds: 0)
    machine.start(at: start) { generator.next() }
    var link: LinkMachine.AttemptID?
    while let effect = machine.nextEffect() {
      switch effect {
      case .resolve(_, let round):
        machine.resolved(round: round, addresses: 1, at: start) { generator.next() }
      case .connect(let id, _):
        machine.established(id, provenAfter: StormClient.longTime, at: start) { generator.next() }
        machine.worked(id)
        link = id
      default:
        break  // No other effect matters here.
      }
    }
    guard let link else { preconditionFailure("a client that is started connects") }
    machine.ended(link, .closedByPeer, at: start) { generator.next() }
  }

  /// Runs until the client is back; reports each attempt to `tell`.
  mutating func run(
    outage: Duration, using generator: inout SeededGenerator,
    _ tell: (Duration, _ isAccepted: Bool) -> Void
  ) {
    let back = outage.clampedNanoseconds
    var now = LinkInstant(nanoseconds: 0)
    while true {
      while let effect = machine.nextEffect() {
        switch effect {
        case .resolve(_, let round):
          machine.resolved(round: round, addresses: 1, at: now) { generator.next() }
        case .connect(let id, _):
          let isAccepted = now.nanoseconds >= back
          tell(.nanoseconds(now.nanoseconds), isAccepted)
          if isAccepted { return }
          now = now + StormClient.refusal
          machine.failed(id, at: now) { generator.next() }
        default:
          break  // No other effect matters here.
        }
      }
      now = max(now, machine.deadline)
      machine.elapsed(to: now) { generator.next() }
    }
  }
}
