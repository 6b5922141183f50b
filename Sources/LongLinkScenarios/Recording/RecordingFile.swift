// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// A recording as `Protocols/recording.md` specifies it: frames and events in order of time.
package struct RecordingFile: Sendable {
  /// A frame, or an event of a connection or its loop.
  package struct Packet: Sendable {
    package enum Content: Sendable {
      /// The bytes that were kept of a frame, and the size of the whole frame.
      case frame(RecordingWriter.Direction, kept: [UInt8], size: Int)
      case event(Event)
    }

    /// Nanoseconds since 1970.
    package let time: Int64
    /// The number of the connection on its loop; 0 for an event of the whole recording.
    package let connection: UInt32
    package let loop: UInt8
    /// The instant of the loop's clock.
    package let instant: LinkInstant
    package let content: Content

    /// The connection, among those of all loops.
    package var place: Place { Place(loop: loop, connection: connection) }
  }

  package struct Event: Sendable {
    /// Nil for a code that this version does not know.
    package let event: RecordedEvent?
    package let code: UInt8
    /// How often a message or an effect was taken before.
    package let taken: Int
    package let numbers: [UInt64]
    package let bytes: [UInt8]

    /// Why the core has ended the connection, and how many frames it had accepted before; nil for
    /// any other event.
    package var ending: (reason: CloseReason, frames: Int)? {
      // The kinds of `close` and `abandon`.
      guard event == .effect, numbers[0] == 3 || numbers[0] == 4,
        let reason = RecordedReason.decode(kind: numbers[1], value: numbers[2])
      else { return nil }
      return (reason, Int(clamping: numbers[3]))
    }
  }

  package struct Place: Hashable, Comparable, Sendable {
    package let loop: UInt8
    package let connection: UInt32

    package static func < (lhs: Place, rhs: Place) -> Bool {
      (lhs.loop, lhs.connection) < (rhs.loop, rhs.connection)
    }
  }

  /// Why a file cannot be read.
  package enum Failure: Error, Equatable {
    /// It is no recording: it does not begin as one does, or has other interfaces.
    case noRecording
  }

  package private(set) var packets: [Packet] = []
  /// What is damaged, and where; nil if nothing is. The packets before it are there.
  package private(set) var damage: String?
  /// The names of message types.
  package private(set) var names: [UInt32: String] = [:]

  private static let linkTypes = [RecordingWriter.framesLinkType, RecordingWriter.eventsLinkType]

  /// Whether these are the first bytes of a file in the format pcapng.
  package static func isPcapng(_ bytes: [UInt8]) -> Bool {
    bytes.prefix(4) == [0x0A, 0x0D, 0x0D, 0x0A]
  }

  /// Reads a file. A damaged one is read as far as it goes.
  package init(_ bytes: [UInt8]) throws(Failure) {
    guard Self.isPcapng(bytes) else { throw .noRecording }
    var reader = BlockReader(bytes: bytes)
    /// The link types of the interfaces, in order.
    var interfaces: [UInt16] = []
    while let block = reader.next() {
      switch block.type {
      case 0x0A0D_0D0A: interfaces = []
      case 1: interfaces.append(block.body.count >= 2 ? reader.number16(block.body, 0) : 0)
      case 6:
        let index = block.body.count >= 20 ? Int(reader.number32(block.body, 0)) : -1
        // Packets of other interfaces may have been merged into the file.
        guard interfaces.indices.contains(index), Self.linkTypes.contains(interfaces[index])
        else { continue }
        guard let packet = reader.packet(block.body, of: interfaces[index]) else {
          damage = "the packet at byte \(block.offset) is malformed"
          break
        }
        packets.append(packet)
      default: break
      }
      if damage != nil { break }
    }
    if damage == nil { damage = reader.damage }
    if packets.isEmpty, !interfaces.contains(where: Self.linkTypes.contains) {
      throw .noRecording
    }
    readNames()
  }

  /// Forgets all connections but those with this number, one on each loop. Returns false if there
  /// are none.
  package mutating func keep(_ connection: UInt32) -> Bool {
    packets.removeAll { $0.connection != connection && $0.connection != 0 }
    return packets.contains { $0.connection == connection }
  }

  private mutating func readNames() {
    for packet in packets {
      guard case .event(let event) = packet.content, event.event == .names else { continue }
      for line in String(decoding: event.bytes, as: UTF8.self).split(separator: "\n") {
        let parts = line.split(separator: " ", maxSplits: 1)
        if parts.count == 2, let type = UInt32(parts[0]) { names[type] = String(parts[1]) }
      }
    }
  }
}

/// Reads the blocks of a file in the format pcapng (draft-ietf-opsawg-pcapng), in either byte
/// order.
private struct BlockReader {
  struct Block {
    let type: UInt32
    let offset: Int
    let body: ArraySlice<UInt8>
  }

  let bytes: [UInt8]
  private var offset = 0
  private var isBigEndian = false
  private(set) var damage: String?

  init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  mutating func next() -> Block? {
    guard damage == nil, offset < bytes.count else { return nil }
    guard bytes.count - offset >= 12 else { return damaged("the file is cut off") }
    let start = offset
    let rest = bytes[start...]
    if number32(rest, 0) == 0x0A0D_0D0A {
      // The byte order of a section is that of its magic number.
      isBigEndian = rest[start + 8] == 0x1A
    }
    let size = Int(number32(rest, 4))
    guard size >= 12, size % 4 == 0 else { return damaged("a block has an impossible size") }
    guard size <= rest.count else { return damaged("the file is cut off") }
    guard number32(rest, size - 4) == UInt32(size) else {
      return damaged("the sizes of a block differ")
    }
    offset += size
    return Block(type: number32(rest, 0), offset: start, body: rest[start + 8..<start + size - 4])
  }

  private mutating func damaged(_ text: String) -> Block? {
    damage = "\(text), at byte \(offset)"
    return nil
  }

  func number16(_ slice: ArraySlice<UInt8>, _ place: Int) -> UInt16 {
    let pair = slice[slice.startIndex + place..<slice.startIndex + place + 2]
    return (isBigEndian ? Array(pair) : pair.reversed()).reduce(0) { $0 << 8 | UInt16($1) }
  }

  func number32(_ slice: ArraySlice<UInt8>, _ place: Int) -> UInt32 {
    let four = slice[slice.startIndex + place..<slice.startIndex + place + 4]
    return (isBigEndian ? Array(four) : four.reversed()).reduce(0) { $0 << 8 | UInt32($1) }
  }

  /// Reads a packet of one of the two interfaces; nil if it is malformed.
  func packet(_ body: ArraySlice<UInt8>, of type: UInt16) -> RecordingFile.Packet? {
    let time = UInt64(number32(body, 4)) << 32 | UInt64(number32(body, 8))
    let (captured, original) = (Int(number32(body, 12)), Int(number32(body, 16)))
    guard captured <= body.count - 20, captured >= RecordingWriter.prefixSize else { return nil }
    let content = body.dropFirst(20).prefix(captured)
    func number(_ place: Int, _ size: Int) -> UInt64 {
      content.dropFirst(place).prefix(size).reduce(0) { $0 << 8 | UInt64($1) }
    }
    guard number(6, 2) == UInt64(RecordingWriter.version) else { return nil }
    let rest = Array(content.dropFirst(RecordingWriter.prefixSize))
    let made: RecordingFile.Packet.Content
    switch type {
    case RecordingWriter.framesLinkType:
      guard let direction = RecordingWriter.Direction(rawValue: UInt8(number(4, 1))),
        direction != .neither, original >= captured
      else { return nil }
      made = .frame(direction, kept: rest, size: original - RecordingWriter.prefixSize)
    case RecordingWriter.eventsLinkType:
      guard let event = event(rest) else { return nil }
      made = .event(event)
    default: return nil
    }
    return RecordingFile.Packet(
      time: Int64(truncatingIfNeeded: time), connection: UInt32(number(0, 4)),
      loop: UInt8(number(5, 1)),
      instant: LinkInstant(nanoseconds: Int64(bitPattern: number(8, 8))), content: made)
  }

  private func event(_ content: [UInt8]) -> RecordingFile.Event? {
    guard content.count >= 4 else { return nil }
    let count = Int(content[2]) << 8 | Int(content[3])
    guard content.count >= 4 + 8 * count else { return nil }
    let event = RecordedEvent(rawValue: content[0])
    if let event, event.numbers != count { return nil }
    let numbers = (0..<count).map { index in
      content[4 + 8 * index..<12 + 8 * index].reduce(0) { $0 << 8 | UInt64($1) }
    }
    return RecordingFile.Event(
      event: event, code: content[0], taken: Int(content[1]), numbers: numbers,
      bytes: Array(content[(4 + 8 * count)...]))
  }
}
