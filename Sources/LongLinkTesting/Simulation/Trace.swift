// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkTransport

/// The events of a simulated world: the last ones in readable form, and a hash of all events.
package struct Trace {
  package enum Kind: UInt8 {
    case timeMoved
    case loopMade
    case listening
    case listenerClosed
    case connecting
    case connectArrived
    case connectFailed
    case connected
    case written
    case bytesArrived
    case endSent
    case endArrived
    case resetSent
    case resetArrived
    case closed
    case linkLost
    case silenced
    case restored
    case corrupted
    case timedOut
    case lookedUp
    case resetInjected
    case clogged
    case unclogged
    case readingStopped
    case readingResumed
    case partitioned
    case partitionEnded
    case paused
    case resumed
    case clockMoved
    case processCrashed
    case machineCrashed
    case processStarted
  }

  /// One event. `link` is 0 for events without a link. The meaning of `value` and `digest` depends
  /// on the kind. `machine` is where the event happens; nil if nowhere.
  package struct Entry {
    package var time: LinkInstant
    package var kind: Kind
    package var link = 0
    package var side = Side.initiator
    package var value: UInt64 = 0
    var digest: UInt32 = 0
    package var address: SocketAddress?
    package var machine: Int?
    /// Whether a stream took fewer bytes than it was given, or has no room left. The hash leaves it
    /// out: it shows in the next writes.
    package var isFull = false
  }

  /// FNV-1a, 64 bits, of all entries since the beginning
  /// (<http://www.isthe.com/chongo/tech/comp/fnv>).
  private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
  private(set) var count: UInt64 = 0
  private var entries: [Entry] = []
  private var oldest = 0
  private let capacity: Int

  init(capacity: Int) {
    self.capacity = max(capacity, 0)
  }

  mutating func append(_ entry: Entry) {
    count += 1
    mix(UInt64(bitPattern: entry.time.nanoseconds))
    mix(UInt64(entry.kind.rawValue) | UInt64(entry.side.rawValue) << 8)
    mix(UInt64(entry.link))
    mix(entry.value)
    mix(UInt64(entry.digest) | UInt64(bitPattern: Int64(entry.machine ?? -1)) << 32)
    if let address = entry.address {
      for byte in address.description.utf8 { mix(byte) }
    }
    guard capacity > 0 else { return }
    if entries.count < capacity {
      entries.append(entry)
    } else {
      entries[oldest] = entry
      oldest = (oldest + 1) % capacity
    }
  }

  /// The kept entries, oldest first, a line each.
  func lines(machines: [String]) -> [String] {
    (entries[oldest...] + entries[..<oldest]).map { $0.line(machines: machines) }
  }

  private mutating func mix(_ word: UInt64) {
    var rest = word
    for _ in 0..<8 {
      mix(UInt8(truncatingIfNeeded: rest))
      rest >>= 8
    }
  }

  private mutating func mix(_ byte: UInt8) {
    hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
  }
}

extension Trace.Entry {
  /// Makes an event at one end of a link.
  package init(_ kind: Trace.Kind, at end: EndName, of machine: Int, _ time: LinkInstant) {
    self.init(time: time, kind: kind, link: end.link, side: end.side, machine: machine)
  }

  /// The end of the link at which the event happens.
  package var end: EndName { EndName(link: link, side: side) }

  /// The time, link and text of the event.
  func line(machines: [String]) -> String {
    let place = link == 0 ? "" : "link \(link) \(side): "
    return "\(time)  \(place)\(text(machine: machine.map { machines[$0] } ?? ""))"
  }

  /// A readable description of the event.
  package func text(machine: String) -> String {
    let subject = address.map { " \($0)" } ?? ""
    return
      switch kind
    {
    case .timeMoved: "time advances"
    case .loopMade: "loop \(value) is made on \(machine)"
    case .listening: "listens on\(subject)"
    case .listenerClosed: "stops listening on\(subject)"
    case .connecting: "connects to\(subject)"
    case .connectArrived: "reaches\(subject)"
    case .connectFailed: "fails to connect, errno \(value)"
    case .connected: "is connected"
    case .written: "writes \(value) bytes (\(String(digest, radix: 16)))"
    case .bytesArrived: "gets \(value) bytes"
    case .endSent: "ends its side"
    case .endArrived: "gets the end"
    case .resetSent: "resets"
    case .resetArrived: "gets a reset"
    case .closed: "closes"
    case .linkLost: "the link is lost"
    case .silenced: "its packets are lost from now on"
    case .restored: "its packets arrive again"
    case .corrupted: "bit \(digest) of byte \(value) is flipped"
    case .timedOut: "times out, because nothing is acknowledged"
    case .lookedUp: "a name is looked up, \(value) address\(value == 1 ? "" : "es")"
    case .resetInjected: "a reset is sent in its name"
    case .clogged: "its writes take nothing from now on"
    case .unclogged: "its writes succeed again"
    case .readingStopped: "stops reading"
    case .readingResumed: "reads again"
    case .partitioned: "partition \(value) begins"
    case .partitionEnded: "partition \(value) ends"
    case .paused: "\(machine) is frozen"
    case .resumed: "\(machine) resumes"
    case .clockMoved: "the clock of \(machine) jumps forward by \(value) ns"
    case .processCrashed: "the process on \(machine) crashes"
    case .machineCrashed: "\(machine) crashes silently"
    case .processStarted: "the process on \(machine) starts"
    }
  }
}
