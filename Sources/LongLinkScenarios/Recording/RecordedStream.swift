// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// The bytes that one side has sent, made again from the frames of a recording.
///
/// Bodies that were left out are zeros, and checksums are made anew, because the recorded one
/// belongs to other bytes.
struct RecordedStream {
  private struct Frame {
    /// The recorded bytes.
    let kept: [UInt8]
    let size: Int
  }

  private let frames: [Frame]
  /// The index of the frame whose checksum was wrong; nil if none was.
  private let wrong: Int?
  private var index = 0
  private var offset = 0
  /// The kept bytes of the frame at `index`, with its new checksum; nil before they are needed.
  private var current: [UInt8]?
  /// The frames whose metadata was used for a command, by index.
  private var used: Set<Int> = []

  /// Makes a stream of frames. `count` is how many bytes were moved at most: the last frame may be
  /// incomplete, and claim to be much larger.
  init(_ packets: [(kept: [UInt8], size: Int)], atMost count: Int = .max, wrong: Int? = nil) {
    var left = count
    frames = packets.map { packet in
      let size = min(packet.size, max(packet.kept.count, left))
      left -= size
      return Frame(kept: packet.kept, size: size)
    }
    self.wrong = wrong
  }

  /// The kept bytes of a frame, with the checksum that it has with zeros for the others.
  private static func sealed(_ frame: Frame, isWrong: Bool) -> [UInt8] {
    var bytes = frame.kept
    guard bytes.count >= NativeLayout.headerLength else { return bytes }
    let kept = unsafe bytes.withUnsafeBytes { buffer in
      // The header is there, and the bytes behind it are as many as are stated.
      unsafe Adler32.checksum(
        ofFrame: buffer.baseAddress!, bodyLength: buffer.count - NativeLayout.headerLength)
    }
    // A zero leaves the lower sum as it is, and adds it to the upper one.
    let (low, high) = (UInt64(kept & 0xFFFF), UInt64(kept >> 16))
    let zeros = UInt64(frame.size - bytes.count)
    var sum = UInt32((high + low * (zeros % 65_521)) % 65_521) << 16 | UInt32(low)
    if isWrong { sum ^= 1 }
    for place in 0..<4 { bytes[12 + place] = UInt8(truncatingIfNeeded: sum >> (24 - 8 * place)) }
    return bytes
  }

  /// Returns the next bytes; nil if the recording does not have so many.
  mutating func next(_ count: Int) -> [UInt8]? {
    var bytes: [UInt8] = []
    while bytes.count < count {
      guard index < frames.count else { return nil }
      let frame = frames[index]
      let kept = current ?? Self.sealed(frame, isWrong: index == wrong)
      current = kept
      let end = min(frame.size, offset + count - bytes.count)
      if offset < kept.count { bytes += kept[offset..<min(end, kept.count)] }
      let zeros = end - max(offset, kept.count)
      if zeros > 0 { bytes += repeatElement(0, count: zeros) }
      offset = end
      if offset == frame.size { advance() }
    }
    return bytes
  }

  private mutating func advance() {
    index += 1
    offset = 0
    current = nil
  }

  /// Compares the next bytes with those of the recording; returns what differs, nil if nothing
  /// does. Bytes that were left out, bodies of messages, and the checksums over them are equal to
  /// any.
  mutating func compare(_ bytes: ArraySlice<UInt8>) -> String? {
    var bytes = bytes
    while !bytes.isEmpty {
      guard index < frames.count else { return "the recording has fewer bytes" }
      let frame = frames[index]
      let decided = Self.decidedByCore(frame.kept)
      let isSealed = decided == frame.size && !Self.mayBeBlanked(frame.kept)
      let count = min(bytes.count, frame.size - offset)
      for (place, byte) in zip(offset..., bytes.prefix(count)) {
        let isKnown = place < decided && (isSealed || !(12..<16).contains(place))
        if isKnown, frame.kept[place] != byte {
          return "byte \(place) of \(Self.name(frame.kept)) is \(byte) instead of "
            + "\(frame.kept[place])"
        }
      }
      bytes = bytes.dropFirst(count)
      offset += count
      if offset == frame.size { advance() }
    }
    return nil
  }

  /// The metadata of the next frame of this kind and serial, of which no command has had it yet;
  /// zeros if the frame was not sent.
  mutating func metadata(of kind: FrameKind, serial: UInt32, count: Int) -> [UInt8] {
    for position in frames.indices.dropFirst(index) where !used.contains(position) {
      let kept = frames[position].kept
      guard kept.count >= 18 + count, kept[0] & 0x3F == kind.rawValue, kept[0] & 0x80 != 0,
        Self.number(kept, 4) == serial, Int(kept[16]) << 8 | Int(kept[17]) == count
      else { continue }
      used.insert(position)
      return Array(kept[18..<18 + count])
    }
    return [UInt8](repeating: 0, count: count)
  }

  /// How many of the first bytes of a frame its core has decided, or was told: not the bodies of
  /// messages, which are zeros in a replay.
  private static func decidedByCore(_ kept: [UInt8]) -> Int {
    guard let first = kept.first else { return 0 }
    let head = NativeLayout.headerLength
    switch FrameKind(wire: first & 0x3F) {
    case .request, .response, .push:
      guard first & 0x80 != 0, kept.count >= head + 2 else { return min(head, kept.count) }
      return min(head + 2 + (Int(kept[head]) << 8 | Int(kept[head + 1])), kept.count)
    case .item: return min(head, kept.count)
    default: return kept.count
    }
  }

  /// Whether the frame may have had secrets: a hello, and a message with metadata.
  private static func mayBeBlanked(_ kept: [UInt8]) -> Bool {
    guard let first = kept.first else { return false }
    return first & 0x80 != 0 || first & 0x3F == FrameKind.hello.rawValue
  }

  private static func number(_ bytes: [UInt8], _ place: Int) -> UInt32 {
    bytes[place..<place + 4].reduce(0) { $0 << 8 | UInt32($1) }
  }

  /// A frame for a message about it.
  private static func name(_ kept: [UInt8]) -> String {
    guard kept.count >= 8 else { return "a frame" }
    let kind = FrameKind(wire: kept[0] & 0x3F).map { "\($0)" } ?? "unknown"
    return "the frame \(kind) with serial \(number(kept, 4))"
  }
}
