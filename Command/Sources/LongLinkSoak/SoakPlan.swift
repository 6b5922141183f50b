// SPDX-License-Identifier: Apache-2.0

import LongLinkTesting

/// The faults of a soak, and when they happen.
struct SoakPlan: Equatable, Sendable {
  enum Kind: String, CaseIterable, Sendable {
    /// A server is killed with SIGKILL and started again.
    case kill
    /// A server drains after SIGTERM, and is started again.
    case drain
    /// A server is frozen with SIGSTOP, and continues later.
    case freeze
    /// A process of clients is frozen, and continues later.
    case pause
    /// The network between some clients and a server carries nothing for a while.
    case partition
    /// The connections of some clients to a server are reset.
    case cut

    fileprivate var endsServer: Bool { self == .kill || self == .drain }
  }

  /// A part of the soak that can have only one fault at a time.
  private enum Site: Hashable {
    case server(Int)
    case clients(Int)
    case relay(Int)

    init(_ kind: Kind, _ target: Int) {
      switch kind {
      case .kill, .drain, .freeze: self = .server(target)
      case .pause: self = .clients(target)
      case .partition, .cut: self = .relay(target)
      }
    }
  }

  struct Fault: Equatable, Sendable {
    let kind: Kind
    /// The index of the server, relay or process of clients.
    let target: Int
    /// The time since the plan's beginning.
    let start: Duration
    /// How long it lasts: for instance, until a killed server is started again.
    let length: Duration
  }

  let faults: [Fault]

  /// Makes a plan of length `total`, which the seed determines.
  ///
  /// The first server is frozen and cut off, but never ended, so that its memory can be followed.
  init(seed: UInt64, lasting total: Duration, servers: Int, clientProcesses: Int) {
    var generator = SeededGenerator(seed: seed)
    var faults: [Fault] = []
    var busyUntil = [Site: Duration]()
    var now = Duration.zero
    // Each kind comes once before one comes again, so that short plans have all of them.
    var kinds: [Kind] = []
    while true {
      now += .milliseconds(Int.random(in: 300...3_000, using: &generator))
      if kinds.isEmpty { kinds = Kind.allCases.shuffled(using: &generator) }
      let kind = kinds[0]
      let length: Duration =
        kind == .cut ? .zero : .milliseconds(Int.random(in: 200...5_000, using: &generator))
      guard now + length < total else { break }
      let choice = (kind.endsServer ? 1 : 0)..<(kind == .pause ? clientProcesses : servers)
      let target = Int.random(in: choice, using: &generator)
      let place = Site(kind, target)
      // Two faults at one site would undo each other; those at different sites may overlap.
      guard busyUntil[place, default: .zero] <= now else { continue }
      kinds.removeFirst()
      busyUntil[place] = now + length
      faults.append(Fault(kind: kind, target: target, start: now, length: length))
    }
    self.faults = faults
  }
}
