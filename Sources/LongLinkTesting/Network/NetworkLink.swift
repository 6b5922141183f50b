// SPDX-License-Identifier: Apache-2.0

@_spi(Containers) internal import LongLinkCore
internal import LongLinkTransport

/// One end of a link: who asked for the connection, or who listened.
enum Side: UInt8, CustomStringConvertible {
  case initiator
  case acceptor

  var other: Side { self == .initiator ? .acceptor : .initiator }
  var description: String { self == .initiator ? "client" : "server" }
}

/// Names one end of one link.
struct EndName: Hashable {
  let link: Int
  let side: Side

  var other: EndName { EndName(link: link, side: side.other) }
}

/// One connection of the simulated network. What the world holds is reached under its lock alone.
final class NetworkLink {
  let number: Int
  let destination: SocketAddress
  let initiator: LinkEnd
  /// Nil until the connect has reached a listener.
  var acceptor: LinkEnd?
  /// How often the initiator has asked for the connection.
  var attempts = 0

  init(number: Int, destination: SocketAddress, initiator: LinkEnd) {
    self.number = number
    self.destination = destination
    self.initiator = initiator
  }

  func end(_ side: Side) -> LinkEnd? {
    side == .initiator ? initiator : acceptor
  }

  /// Whether somebody has it open.
  var isOpen: Bool { initiator.isOpen || acceptor?.isOpen == true }
}

/// One end of a link, as its owner sees it, and the direction that it writes into.
final class LinkEnd {
  enum Phase: Equatable {
    case connecting
    case connected
    /// The connect came to nothing, for this reason.
    case failed(CInt)
    /// Its owner has closed it.
    case closed
  }

  let name: EndName
  /// The machine that it is on.
  let machine: Int
  /// The loop that owns it; nil until it is adopted.
  var loop: Int?
  var phase: Phase
  let local: SocketAddress?
  let peer: SocketAddress?
  var interest: Readiness = []
  var inbox = ByteQueue()
  /// The peer's end has arrived.
  var hasEnded = false
  /// This side has ended.
  var isShut = false
  /// What the next read or write throws; told once.
  var error: CInt?
  /// Nothing comes or goes any more.
  var isBroken = false
  /// True while its owner does not get to read.
  var readsNothing = false
  var userTimeout: Int64?
  /// When it gives up what is not acknowledged by then; nil while nothing is.
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

  /// What its owner can do without waiting.
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
  /// Bytes that were written and that the receiver has not read.
  var unread = 0
  /// Bytes that were written since the beginning.
  var written = 0
  /// Bytes of them that have reached the receiver's machine, read or not.
  var arrived = 0
  /// When the last packet arrives: later ones do not overtake it.
  var lastArrival = LinkInstant(nanoseconds: 0)
  /// When the last packet has left, where the bandwidth is limited.
  var freeAt = LinkInstant(nanoseconds: 0)
  /// True while nothing arrives; what is sent waits in `held`.
  var isSilent = false
  var held: [Packet] = []
  /// True while there is no room for anything.
  var isClogged = false
  /// Packets of an earlier epoch are dropped when they arrive.
  var epoch: UInt32 = 0
  var flips: [Flip] = []

  /// A bit that will be wrong, by the byte's place in all that is written.
  struct Flip {
    let offset: Int
    let bit: Int
  }

  init(conditions: LinkConditions) {
    self.conditions = conditions
  }

  var room: Int { isClogged ? 0 : max(conditions.window - unread, 0) }

  /// Takes written bytes over, with the flips that lie in them; returns the flips that were made.
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

  /// The pieces in which bytes leave, each with the time at which it has left.
  func pieces(of bytes: [UInt8], at now: LinkInstant) -> [([UInt8], LinkInstant)] {
    guard let bandwidth = conditions.bandwidth else { return [(bytes, max(now, freeAt))] }
    // A fiftieth of a second is small enough for a receiver to see that bytes go on coming.
    let most = min(max(bandwidth / 50, 1_460), 1 << 20)
    return stride(from: 0, to: bytes.count, by: most).map { start in
      let piece = bytes[start..<min(start + most, bytes.count)]
      freeAt = max(now, freeAt) + Int64(Double(piece.count) / Double(bandwidth) * 1e9)
      return ([UInt8](piece), freeAt)
    }
  }

  /// Drops what is under way.
  func drop() {
    epoch += 1
    held = []
    freeAt = LinkInstant(nanoseconds: 0)
  }
}

/// What travels from one end of a link to the other.
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
  /// The links that wait to be accepted.
  var queue: [Int] = []
}
