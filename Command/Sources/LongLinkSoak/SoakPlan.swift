// SPDX-License-Identifier: Apache-2.0

import LongLinkTesting

/// What happens to the processes and networks of a soak, and when.
struct SoakPlan: Equatable, Sendable {
  enum Kind: String, CaseIterable, Sendable {
    /// A server is killed with SIGKILL and started again.
    case kill
    /// A server is told to end, drains, and is started again.
    case drain
    /// A server is frozen with SIGSTOP, and goes on later.
    case freeze
    /// A process of clients is frozen, and goes on later.
    case pause
    /// The network between some clients and a server carries nothing for a while.
    case partition
    /// The connections of some clients to a server are reset.
    case cut

    fileprivate var endsServer: Bool { self == .kill || self == .drain }
  }

  /// What can have one fault at a time.
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
    /// Which server, relay or process of clients.
    let target: Int
    /// Since the plan's beginning.
    let start: Duration
    /// Until it is over: until a killed server is started again, for instance.
    let length: Duration
  }

  let faults: [Fault]

  /// Draws a plan of so long, of which a seed determines all.
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
      // Two faults of one place would undo each other; those of different places overlap.
      guard busyUntil[place, default: .zero] <= now else { continue }
      kinds.removeFirst()
      busyUntil[place] = now + length
      faults.append(Fault(kind: kind, target: target, start: now, length: length))
    }
    self.faults = faults
  }
}
