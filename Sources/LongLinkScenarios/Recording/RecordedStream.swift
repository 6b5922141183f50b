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

  private var frames: [Frame]
  /// The index of the frame whose checksum was wrong; nil if none was.
  private let wrong: Int?
  private var index = 0
  private var offset = 0
  /// The frame at `index`, made again.
  private var current: [UInt8] = []
  /// The frames whose metadata was used for a command, by index.
  private var used: Set<Int> = []

  init(_ packets: [(kept: [UInt8], size: Int)], wrong: Int? = nil) {
    frames = packets.map { Frame(kept: $0.kept, size: $0.size) }
    self.wrong = wrong
    load()
  }

  private mutating func load() {
    current = frames.indices.contains(index) ? make(index) : []
    offset = 0
  }

  private func make(_ index: Int) -> [UInt8] {
    let frame = frames[index]
    let length = NativeLayout.headerLength
    guard frame.kept.count >= length else { return frame.kept }
    var bytes = frame.kept + [UInt8](repeating: 0, count: max(0, frame.size - frame.kept.count))
    var sum = unsafe bytes.withUnsafeBytes { buffer in
      // The header is there, and `size` bytes in all.
      unsafe Adler32.checksum(ofFrame: buffer.baseAddress!, bodyLength: bytes.count - length)
    }
    if index == wrong { sum ^= 1 }
    for place in 0..<4 { bytes[12 + place] = UInt8(truncatingIfNeeded: sum >> (24 - 8 * place)) }
    return bytes
  }

  /// Returns the next bytes; nil if the recording does not have so many.
  mutating func next(_ count: Int) -> [UInt8]? {
    var bytes: [UInt8] = []
    while bytes.count < count {
      guard index < frames.count else { return nil }
      let part = current[offset...].prefix(count - bytes.count)
      bytes += part
      offset += part.count
      if offset == current.count { advance() }
    }
    return bytes
  }

  private mutating func advance() {
    index += 1
    load()
  }

  /// Compares the next bytes with those of the recording; returns what differs, nil if nothing
  /// does. Bytes that were left out, and the checksums over them, are equal to any.
  mutating func compare(_ bytes: ArraySlice<UInt8>) -> String? {
    var bytes = bytes
    while !bytes.isEmpty {
      guard index < frames.count else { return "the recording has fewer bytes" }
      let frame = frames[index]
      let isSealed = frame.kept.count == frame.size && !Self.mayBeBlanked(frame.kept)
      let count = min(bytes.count, frame.size - offset)
      for (place, byte) in zip(offset..., bytes.prefix(count)) {
        let isKnown = place < frame.kept.count && (isSealed || !(12..<16).contains(place))
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
