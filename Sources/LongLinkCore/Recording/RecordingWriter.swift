// SPDX-License-Identifier: Apache-2.0

/// Writes what the recorders of some loops hold as a file in the format pcapng, piece by piece, as
/// `Protocols/recording.md` specifies it.
package struct RecordingWriter {
  /// The link types of the two interfaces: those that are free for private use.
  package static let framesLinkType: UInt16 = 147
  package static let eventsLinkType: UInt16 = 148
  /// The version of the layout of packets.
  package static let version: UInt16 = 1
  /// The bytes before a packet's content: connection, direction, loop, version and instant.
  package static let prefixSize = 16

  /// Which way a frame went, in a packet.
  package enum Direction: UInt8, Sendable {
    case received = 0
    case sent = 1
    case neither = 2
  }

  private enum Interface: UInt32 {
    case frames = 0
    case events = 1
  }

  private var cursors: [RecorderCursor]
  /// The links to write; nil for all.
  private let links: Set<UInt32>?
  /// What was read or written of frames that are not complete, by link and direction.
  private var partial: [Place: PartialFrame] = [:]
  private var lastTime: Int64 = 0
  private var isEnded = false
  private var piece: [UInt8] = []

  private struct Place: Hashable {
    let loop: UInt8
    let link: UInt32
    let direction: Direction
  }

  private struct PartialFrame {
    var kept: [UInt8] = []
    var leftOut = 0
    /// When its last part was moved, and the epoch of the loop.
    var instant: LinkInstant
    let epoch: Int64
  }

  /// Begins a file. `names` are those of message types, in lines of type, blank and name; `links`
  /// are the numbers of the links to write, nil for all of them.
  package init(_ snapshots: [RecorderSnapshot], names: [MessageType: String], links: Set<UInt32>?) {
    cursors = snapshots.map(\.cursor)
    self.links = links
    appendHeaders()
    let lines = names.sorted { $0.key.rawValue < $1.key.rawValue }
      .map { "\($0.key.rawValue) \($0.value)\n" }.joined()
    let first = cursors.indices.compactMap { cursors[$0].peek().map { ($0.instant) } }.min()
    let snapshot = snapshots.first
    appendEvent(
      .names, link: 0, loop: 0, taken: 0, at: first ?? LinkInstant(nanoseconds: 0),
      epoch: snapshot?.epoch ?? 0, numbers: [], Array(lines.utf8))
  }

  /// Returns the next bytes of the file, some 64 KiB; nil at its end.
  package mutating func next() -> [UInt8]? {
    while piece.count < 65_536, !isEnded { step() }
    guard !piece.isEmpty else { return nil }
    defer { piece.removeAll(keepingCapacity: true) }
    return piece
  }

  /// The whole file.
  package static func file(
    _ snapshots: [RecorderSnapshot], names: [MessageType: String], links: Set<UInt32>? = nil
  ) -> [UInt8] {
    var writer = RecordingWriter(snapshots, names: names, links: links)
    var file: [UInt8] = []
    while let piece = writer.next() { file += piece }
    return file
  }

  // MARK: Records

  /// Writes the record that comes next on all loops, or what is left at the end.
  private mutating func step() {
    var earliest: (index: Int, time: Int64, record: RecorderRecord)?
    for index in cursors.indices {
      guard let record = cursors[index].peek() else { continue }
      let time = cursors[index].snapshot.epoch &+ record.instant.nanoseconds
      if earliest.map({ time < $0.time }) ?? true { earliest = (index, time, record) }
    }
    guard let (index, _, record) = earliest else { return end() }
    cursors[index].skip(record)
    guard links?.contains(record.link) ?? true else { return }
    write(record, of: cursors[index].snapshot)
  }

  private mutating func write(_ record: RecorderRecord, of snapshot: RecorderSnapshot) {
    guard record.event.hasParts else {
      return appendEvent(
        record.event, link: record.link, loop: snapshot.loop, taken: record.taken,
        at: record.instant, epoch: snapshot.epoch, numbers: record.numbers, record.rest)
    }
    let isInput = record.event == .received || record.event == .receivedMore
    if record.event == .received || record.event == .wrote {
      appendEvent(
        record.event, link: record.link, loop: snapshot.loop, taken: record.taken,
        at: record.instant, epoch: snapshot.epoch, numbers: record.numbers, [])
    }
    let place = Place(
      loop: snapshot.loop, link: record.link, direction: isInput ? .received : .sent)
    record.forEachPart { part in
      if part.begins {
        partial[place] = PartialFrame(instant: record.instant, epoch: snapshot.epoch)
      }
      // A frame whose beginning was forgotten is left out.
      guard partial[place] != nil else { return }
      partial[place]?.kept += part.kept
      partial[place]?.leftOut += part.leftOut
      partial[place]?.instant = record.instant
      guard part.ends, let frame = partial.removeValue(forKey: place) else { return }
      appendFrame(frame, place)
    }
  }

  /// Writes the frames that are not complete.
  private mutating func end() {
    isEnded = true
    let rest = partial.sorted {
      ($0.key.loop, $0.key.link, $0.key.direction.rawValue)
        < ($1.key.loop, $1.key.link, $1.key.direction.rawValue)
    }
    for (place, frame) in rest {
      appendFrame(frame, place)
    }
    partial = [:]
  }

  // MARK: Packets

  private mutating func appendFrame(_ frame: PartialFrame, _ place: Place) {
    var original = frame.kept.count + frame.leftOut
    if frame.kept.count >= NativeLayout.headerLength {
      let length = frame.kept[8..<12].reduce(0) { $0 << 8 | Int($1) }
      original = NativeLayout.headerLength + length
    }
    appendPacket(
      .frames, link: place.link, place.direction, loop: place.loop, at: frame.instant,
      epoch: frame.epoch, frame.kept, original: original)
  }

  private mutating func appendEvent(
    _ event: RecordedEvent, link: UInt32, loop: UInt8, taken: UInt8, at instant: LinkInstant,
    epoch: Int64, numbers: [UInt64], _ bytes: [UInt8]
  ) {
    var content = [event.rawValue, taken]
    content.append(bigEndian: UInt16(numbers.count))
    for number in numbers { content.append(bigEndian: number) }
    content += bytes
    appendPacket(
      .events, link: link, .neither, loop: loop, at: instant, epoch: epoch, content,
      original: content.count)
  }

  private mutating func appendPacket(
    _ interface: Interface, link: UInt32, _ direction: Direction, loop: UInt8,
    at instant: LinkInstant, epoch: Int64, _ content: [UInt8], original: Int
  ) {
    lastTime = max(lastTime, epoch &+ instant.nanoseconds)
    let time = UInt64(bitPattern: lastTime)
    var prefix: [UInt8] = []
    prefix.append(bigEndian: link)
    prefix += [direction.rawValue, loop]
    prefix.append(bigEndian: RecordingWriter.version)
    prefix.append(bigEndian: instant.nanoseconds)
    var body: [UInt8] = []
    body.append(littleEndian: interface.rawValue)
    body.append(littleEndian: UInt32(truncatingIfNeeded: time >> 32))
    body.append(littleEndian: UInt32(truncatingIfNeeded: time))
    body.append(littleEndian: UInt32(prefix.count + content.count))
    body.append(littleEndian: UInt32(clamping: prefix.count + original))
    body += prefix + content
    appendBlock(6, body)
  }

  // MARK: Blocks of pcapng

  private mutating func appendHeaders() {
    var section: [UInt8] = []
    section.append(littleEndian: 0x1A2B_3C4D as UInt32)
    section.append(littleEndian: 1 as UInt16)
    section.append(littleEndian: 0 as UInt16)
    section.append(littleEndian: UInt64.max)
    section += option(4, Array("LongLink".utf8)) + option(0, [])
    appendBlock(0x0A0D_0D0A, section)
    for (type, name) in [
      (RecordingWriter.framesLinkType, "frames"), (RecordingWriter.eventsLinkType, "events"),
    ] {
      var interface: [UInt8] = []
      interface.append(littleEndian: type)
      interface.append(littleEndian: 0 as UInt16)
      interface.append(littleEndian: 0 as UInt32)
      // Its name, and that times are in nanoseconds.
      interface += option(2, Array(name.utf8)) + option(9, [9]) + option(0, [])
      appendBlock(1, interface)
    }
  }

  private func option(_ code: UInt16, _ value: [UInt8]) -> [UInt8] {
    var option: [UInt8] = []
    option.append(littleEndian: code)
    option.append(littleEndian: UInt16(value.count))
    return option + value.paddedToWords
  }

  private mutating func appendBlock(_ type: UInt32, _ body: [UInt8]) {
    let padded = body.paddedToWords
    let size = UInt32(12 + padded.count)
    piece.append(littleEndian: type)
    piece.append(littleEndian: size)
    piece += padded
    piece.append(littleEndian: size)
  }
}

extension [UInt8] {
  fileprivate mutating func append(bigEndian number: some FixedWidthInteger) {
    unsafe Swift.withUnsafeBytes(of: number.bigEndian) { unsafe append(contentsOf: $0) }
  }

  fileprivate mutating func append(littleEndian number: some FixedWidthInteger) {
    unsafe Swift.withUnsafeBytes(of: number.littleEndian) { unsafe append(contentsOf: $0) }
  }

  /// The bytes, and zeros up to a multiple of four.
  fileprivate var paddedToWords: [UInt8] {
    self + [UInt8](repeating: 0, count: (4 - count % 4) % 4)
  }
}
