// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

/// One end of a link: the connecting or the listening side.
package enum Side: UInt8, CustomStringConvertible {
  case initiator
  case acceptor

  package var other: Side { self == .initiator ? .acceptor : .initiator }
  package var description: String { self == .initiator ? "client" : "server" }
}

/// Identifies one end of one link.
package struct EndName: Hashable {
  package let link: Int
  package let side: Side

  package var other: EndName { EndName(link: link, side: side.other) }
}

/// One connection of the simulated network. It is only used under the lock of `SharedNetwork`.
final class NetworkLink {
  let number: Int
  let destination: SocketAddress
  let initiator: LinkEnd
  /// The accepting side; nil until the connect has reached a listener.
  private(set) var acceptor: LinkEnd?
  /// The number of attempts to connect that the system has made for this link.
  var attempts = 0
  /// The changes of the accepting side that wait until it exists, in order.
  private var changes: [Change] = []

  typealias Change = @Sendable (inout NetworkState, EndName) -> Void

  init(number: Int, destination: SocketAddress, initiator: LinkEnd) {
    self.number = number
    self.destination = destination
    self.initiator = initiator
  }

  func end(_ side: Side) -> LinkEnd? {
    side == .initiator ? initiator : acceptor
  }

  /// Whether at least one end is open.
  var isOpen: Bool { initiator.isOpen || acceptor?.isOpen == true }

  /// Sets the accepting side, and makes the changes that waited for it.
  func accept(_ end: LinkEnd, in state: inout NetworkState) {
    acceptor = end
    for change in changes { change(&state, end.name) }
    changes = []
  }

  /// Changes an end; an accepting side that does not exist yet, as soon as it does.
  func change(_ side: Side, in state: inout NetworkState, _ change: @escaping Change) {
    guard let end = end(side) else { return changes.append(change) }
    change(&state, end.name)
  }
}

/// One end of a link, and the direction that it writes to. Seen from the owner of the end.
final class LinkEnd {
  enum Phase: Equatable {
    case connecting
    case connected
    /// Connecting failed with this error.
    case failed(CInt)
    /// The owner has closed this end of the link.
    case closed
  }

  let name: EndName
  /// The machine on which this end is.
  let machine: Int
  /// The loop that owns the end; nil until a loop adopts it.
  var loop: Int?
  var phase: Phase
  let local: SocketAddress?
  let peer: SocketAddress?
  var interest: Readiness = []
  var inbox = ByteQueue()
  /// Whether the peer's end of the stream has arrived.
  var hasEnded = false
  /// Whether the owner has read the peer's end of the stream.
  var hasReadEnd = false
  /// Whether this side has ended its stream.
  var isShut = false
  /// The error that the next read or write throws, once.
  var error: CInt?
  /// Whether the connection has failed, so that nothing is sent or received any more.
  var isBroken = false
  /// Whether the owner cannot read.
  var readsNothing = false
  /// Whether the owner is told of a failure after it has read the peer's end, whatever its
  /// interest.
  var reportsFailure = false
  var userTimeout: Int64?
  /// When the end fails unless its lost packets are acknowledged; nil if none are lost.
  var givesUpAt: LinkInstant?
  let output: Direction

  init(
    _ name: EndName,
    machine: Int,
    loop: Int?,
    phase: Phase,
    local: SocketAddress?,
    peer: SocketAddress?,
    conditions: LinkConditions
  ) {
    self.name = name
    self.machine = machine
    self.loop = loop
    self.phase = phase
    self.local = local
    self.peer = peer
    output = Direction(conditions: conditions)
  }

  var isOpen: Bool { phase != .closed }

  /// The operations that would not block.
  var readiness: Readiness {
    switch phase {
    case .connecting, .closed: return []
    case .failed: return [.read, .write]
    case .connected: break
    }
    if isBroken { return [.read, .write] }
    var readiness: Readiness = []
    if !readsNothing, !inbox.isEmpty || hasEnded { readiness.insert(.read) }
    if isShut || output.room > 0 { readiness.insert(.write) }
    return readiness
  }
}

/// One direction of a link, as the network sees it.
final class Direction {
  var conditions: LinkConditions
  /// The number of bytes written that the receiver has not read yet.
  var unread = 0
  /// The number of all bytes written.
  var written = 0
  /// The number of bytes that have reached the receiver's machine, read or not.
  var arrived = 0
  /// When the last packet arrives. Later packets do not overtake it.
  var lastArrival = LinkInstant(nanoseconds: 0)
  /// When the last packet will have left, which delays later packets if the bandwidth is limited.
  var freeAt = LinkInstant(nanoseconds: 0)
  /// Whether nothing arrives for now. Meanwhile packets wait in `held`.
  var isSilent = false
  var held: [Packet] = []
  /// Whether writes take nothing for now.
  var isClogged = false
  /// The current epoch. A packet of an earlier epoch is dropped when it arrives.
  var epoch: UInt32 = 0
  var flips: [Flip] = []

  /// A bit to flip. `offset` counts all bytes of the direction.
  struct Flip {
    let offset: Int
    let bit: Int
  }

  init(conditions: LinkConditions) {
    self.conditions = conditions
  }

  var room: Int { isClogged ? 0 : max(conditions.window - unread, 0) }

  /// Counts bytes that are written, and flips the bits due in them; returns these flips.
  func take(_ bytes: inout [UInt8]) -> [Flip] {
    let range = written..<written + bytes.count
    written = range.upperBound
    unread += bytes.count
    guard !flips.isEmpty else { return [] }
    let made = flips.filter { range.contains($0.offset) }
    for flip in made { bytes[flip.offset - range.lowerBound] ^= 1 << flip.bit }
    flips.removeAll { $0.offset < range.upperBound }
    return made
  }

  /// The pieces in which bytes leave, each with the time when it has left.
  func pieces(of bytes: [UInt8], at now: LinkInstant) -> [([UInt8], LinkInstant)] {
    guard let bandwidth = conditions.bandwidth else { return [(bytes, max(now, freeAt))] }
    // Pieces of 1/50 s are small enough for the receiver to see a steady stream of bytes.
    let most = min(max(bandwidth / 50, 1_460), 1 << 20)
    return stride(from: 0, to: bytes.count, by: most).map { start in
      let piece = bytes[start..<min(start + most, bytes.count)]
      freeAt = max(now, freeAt) + Int64(Double(piece.count) / Double(bandwidth) * 1e9)
      return ([UInt8](piece), freeAt)
    }
  }

  /// Drops all packets in flight.
  func drop() {
    epoch += 1
    held = []
    freeAt = LinkInstant(nanoseconds: 0)
  }
}

/// A packet from one end of a link to the other.
enum Packet {
  case bytes([UInt8])
  case end
  case reset
}

/// A listening socket of the simulated network.
struct NetworkListener {
  let number: Int
  let machine: Int
  let loop: Int
  let address: SocketAddress
  let backlog: Int
  var interest: Readiness = []
  /// The numbers of the links that wait to be accepted, in the order of arrival.
  var queue: [Int] = []
}
