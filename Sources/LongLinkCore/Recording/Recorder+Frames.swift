// SPDX-License-Identifier: Apache-2.0

extension Recorder {
  /// Notes a read of the last `count` bytes of `input`, which begins with a frame. The bytes that
  /// are no frames of this connection (`isParsed` is false) are only counted.
  package func noteInput(
    _ count: Int, in input: UnsafeRawBufferPointer, of link: UInt32, at now: LinkInstant,
    from sender: Role, isParsed: Bool
  ) {
    var writer = PartWriter(.received, count, of: link, at: now, in: self)
    if isParsed {
      _ = unsafe writer.append(
        input, input.count - count..<input.count, from: 0, sender, whole: recordsBodies)
    }
    writer.end()
  }

  /// Notes that the first `count` bytes of `chunk` were written. It begins with a frame, or with
  /// the rest of the one that was written in part.
  package func noteOutput(
    _ count: Int, of chunk: UnsafeRawBufferPointer, of link: UInt32, at now: LinkInstant,
    from sender: Role, isParsed: Bool
  ) {
    var writer = PartWriter(.wrote, count, of: link, at: now, in: self)
    defer { writer.end() }
    guard isParsed, count > 0 else { return }
    var offset = 0
    if !rests.isEmpty, var rest = rests.removeValue(forKey: link) {
      let kept = min(rest.kept, count)
      let leftOut = min(rest.leftOut, count - kept)
      rest.kept -= kept
      rest.leftOut -= leftOut
      let isWhole = rest.kept + rest.leftOut == 0
      unsafe writer.append(
        UnsafeRawBufferPointer(rebasing: chunk[..<kept]), leftOut: leftOut, begins: false,
        ends: isWhole)
      guard isWhole else {
        rests[link] = rest
        return
      }
      offset = kept + leftOut
    }
    if let rest = unsafe writer.append(
      chunk, offset..<count, from: offset, sender, whole: recordsBodies)
    {
      rests[link] = rest
    }
  }

  /// Forgets a link that has ended.
  package func forget(_ link: UInt32) {
    if !rests.isEmpty { rests[link] = nil }
  }
}

/// Writes one record of a read or a write, with the parts of its frames; more records, if it has
/// too many parts for one.
@safe struct PartWriter {
  private let recorder: Recorder
  private let event: RecordedEvent
  private let link: UInt32
  private let now: LinkInstant
  /// Where the record begins.
  private var start: UnsafeMutableRawPointer

  init(
    _ event: RecordedEvent, _ count: Int, of link: UInt32, at now: LinkInstant,
    in recorder: Recorder
  ) {
    self.recorder = recorder
    self.event = event
    self.link = link
    self.now = now
    unsafe start = recorder.begin(event, of: link, at: now, 24)
    unsafe start.storeBytes(
      of: UInt64(truncatingIfNeeded: count), toByteOffset: 16, as: UInt64.self)
  }

  /// Ends the record: writes its size.
  func end() {
    // The record is in the recorder's segment, and its head has been written.
    unsafe start.storeBytes(
      of: UInt16(truncatingIfNeeded: recorder.place - start), as: UInt16.self)
  }

  /// Appends the parts of the frames in `range` of `bytes`; a frame begins at `offset`. Returns the
  /// rest of the last frame, if it goes on behind the range.
  mutating func append(
    _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, from offset: Int, _ sender: Role,
    whole: Bool
  ) -> Recorder.Rest? {
    var offset = offset
    while offset < range.upperBound {
      if !whole, offset >= range.lowerBound {
        offset = unsafe appendPlain(bytes, offset, range.upperBound)
        if offset >= range.upperBound { break }
      }
      var first = max(offset, range.lowerBound)
      let begins = first == offset
      guard bytes.count - offset >= NativeLayout.headerLength else {
        // A head that has not arrived completely.
        unsafe append(
          UnsafeRawBufferPointer(rebasing: bytes[first..<range.upperBound]), leftOut: 0,
          begins: begins, ends: false)
        return nil
      }
      // Its 16 bytes are there.
      let frame = unsafe RecordedFrame(bytes, at: offset, from: sender, whole: whole)
      if frame.end > range.lowerBound {
        let last = min(frame.end, range.upperBound)
        var keptEnd = frame.keptEnd
        let body = offset + NativeLayout.headerLength
        if range.lowerBound > body, range.lowerBound < frame.sizeEnd {
          // The first byte of the metadata's size has come alone, and was not kept.
          first = body
        }
        if frame.mayHaveSecrets {
          // What can have secrets is kept when it is there completely, and not before: then they
          // are all known, and it is looked through once.
          if range.upperBound < frame.checkedEnd {
            keptEnd = body
          } else if range.lowerBound < frame.checkedEnd {
            first = min(first, max(body, offset))
          }
        }
        let kept = max(first, min(keptEnd, last))
        unsafe append(
          bytes, first..<kept, frame, leftOut: last - max(kept, range.lowerBound),
          begins: begins, ends: last == frame.end)
        if frame.end > range.upperBound {
          let rest = max(0, keptEnd - range.upperBound)
          return Recorder.Rest(kept: rest, leftOut: frame.end - range.upperBound - rest)
        }
      }
      offset = frame.end
    }
    return nil
  }

  /// The kinds of frames whose bodies are left out, by bits: request, response, item and push.
  private static let plainKinds: UInt64 = 0b0100_0111

  /// Appends whole small frames that have no secrets and whose bodies are left out, as most frames
  /// are, as many as there are in a row. Returns where the next frame begins.
  private func appendPlain(
    _ bytes: UnsafeRawBufferPointer, _ offset: Int, _ end: Int
  ) -> Int {
    guard let base = bytes.baseAddress else { return offset }
    var (offset, place, room) = unsafe (offset, recorder.place, recorder.room)
    // 40 bytes are copied, whatever the frame's size. So there are 40 bytes of the frame, and room
    // for 48.
    while end &- offset >= 40, room >= 48 {
      let frame = unsafe base + offset
      let first = unsafe frame.load(as: UInt8.self)
      let length = unsafe Int(
        UInt32(bigEndian: frame.loadUnaligned(fromByteOffset: 8, as: UInt32.self)))
      guard Self.plainKinds >> UInt64(first & 0x3F) & 1 == 1, length <= end &- offset &- 16 else {
        break
      }
      var kept = 16
      if first & 0x80 != 0 {
        let size = unsafe Int(
          UInt16(bigEndian: frame.loadUnaligned(fromByteOffset: 16, as: UInt16.self)))
        guard size <= RecordedFrame.plainMetadata, size &+ 2 <= length else { break }
        kept = 18 &+ size
      }
      let word =
        UInt64(truncatingIfNeeded: kept) | Recorder.begins | Recorder.ends
        | UInt64(truncatingIfNeeded: 16 &+ length &- kept) << 32
      unsafe place.storeBytes(of: word, as: UInt64.self)
      unsafe (place + 8).copyMemory(from: frame, byteCount: 40)
      unsafe place += 8 &+ kept
      room &-= 8 &+ kept
      offset &+= 16 &+ length
    }
    unsafe recorder.place = place
    recorder.room = room
    return offset
  }

  /// Appends a part of a frame, with zeros in place of its secrets.
  private mutating func append(
    _ bytes: UnsafeRawBufferPointer, _ kept: Range<Int>, _ frame: RecordedFrame, leftOut: Int,
    begins: Bool, ends: Bool
  ) {
    let part = unsafe UnsafeRawBufferPointer(rebasing: bytes[kept])
    let isChecked = frame.mayHaveSecrets && kept.lowerBound < frame.checkedEnd && !kept.isEmpty
    let secrets = isChecked ? unsafe frame.secrets(in: bytes) : []
    if secrets.isEmpty {
      unsafe append(part, leftOut: leftOut, begins: begins, ends: ends)
      return
    }
    var copy = unsafe [UInt8](part)
    for secret in secrets {
      for index in secret.clamped(to: kept) { copy[index - kept.lowerBound] = 0 }
    }
    unsafe copy.withUnsafeBytes {
      unsafe append($0, leftOut: leftOut, begins: begins, ends: ends)
    }
  }

  /// Appends a part of a frame.
  mutating func append(
    _ kept: UnsafeRawBufferPointer, leftOut: Int, begins: Bool, ends: Bool
  ) {
    let size = 8 &+ kept.count
    guard size <= recorder.room else {
      unsafe appendInPieces(kept, leftOut: leftOut, begins: begins, ends: ends)
      return
    }
    let word =
      UInt64(truncatingIfNeeded: kept.count) | (begins ? Recorder.begins : 0)
      | (ends ? Recorder.ends : 0) | UInt64(truncatingIfNeeded: leftOut) << 32
    // There is room for the part.
    let place = unsafe recorder.place
    unsafe place.storeBytes(of: word, as: UInt64.self)
    if let source = kept.baseAddress {
      unsafe (place + 8).copyMemory(from: source, byteCount: kept.count)
    }
    unsafe recorder.place = place + size
    recorder.room &-= size
  }

  /// Appends a part that does not fit into the segment, in several records.
  private mutating func appendInPieces(
    _ kept: UnsafeRawBufferPointer, leftOut: Int, begins: Bool, ends: Bool
  ) {
    var (kept, begins) = unsafe (kept, begins)
    // Each piece is at most half of a segment, so that it fits into an empty one.
    let most = recorder.segmentSize / 2
    repeat {
      let count = min(kept.count, most)
      if 8 + count > recorder.room { goOn() }
      let isLast = count == kept.count
      let piece = unsafe UnsafeRawBufferPointer(rebasing: kept[..<count])
      unsafe append(piece, leftOut: isLast ? leftOut : 0, begins: begins, ends: isLast && ends)
      unsafe kept = UnsafeRawBufferPointer(rebasing: kept[count...])
      begins = false
    } while unsafe !kept.isEmpty
  }

  /// Ends the record, and begins another one in the next segment.
  private mutating func goOn() {
    end()
    recorder.turnOver()
    unsafe start = recorder.begin(
      event == .received ? .receivedMore : .wroteMore, of: link, at: now,
      RecorderRecord.headSize)
  }
}

/// What is recorded of a frame: its head and metadata, the bodies of control frames, and no secret.
struct RecordedFrame {
  /// The positions of the frame's first byte, and behind the last that is kept, and the last.
  let start: Int
  let keptEnd: Int
  let end: Int
  /// The position behind the bytes that can have secrets: those of a hello, or metadata.
  let checkedEnd: Int
  /// The position behind the size of the metadata; that of the body if there is none.
  let sizeEnd: Int
  private let kind: UInt8

  /// The frame whose 16 bytes of head begin at `start`.
  @inline(__always)
  init(_ bytes: UnsafeRawBufferPointer, at start: Int, from sender: Role, whole: Bool) {
    // The caller has checked that there are 16 bytes.
    let length = unsafe UInt32(
      bigEndian: bytes.loadUnaligned(fromByteOffset: start + 8, as: UInt32.self))
    let byte = unsafe bytes[start]
    self.start = start
    kind = byte & 0x3F
    end = start + NativeLayout.headerLength + Int(length)
    let body = start + NativeLayout.headerLength
    var (kept, checked, size) = (body, body, body)
    switch FrameKind(wire: kind) {
    case .request, .response, .push:
      if byte & 0x80 != 0 {
        size += 2
        // Until its two bytes are there, nothing is kept of the body.
        if bytes.count < size { break }
        kept = unsafe size + (Int(bytes[body]) << 8 | Int(bytes[body + 1]))
        checked = kept
      }
      if whole { kept = end }
    case .item, .ignorable, nil:
      if whole { kept = end }
    case .renewal where sender == .client: break
    // A body that the kind does not allow is none: what looks like a ping may be text.
    case .end, .cancel: break
    case .credit: if length == 4 { kept = end }
    case .ping, .pong: if length <= Wire.pingLimit { kept = end }
    case .renewal, .welcome, .goaway: if length <= Wire.controlLimit { kept = end }
    case .hello:
      if length <= Wire.controlLimit {
        kept = end
        checked = end
      }
    }
    keptEnd = min(kept, end)
    checkedEnd = min(checked, end)
    sizeEnd = min(size, end)
  }

  /// The size of a metadata block up to which it has no room for a credential: the shortest name of
  /// one, `cookie`, and a value of one byte take 13 bytes.
  static let plainMetadata = 12

  /// Whether some of the kept bytes may have to be blanked.
  @inline(__always)
  var mayHaveSecrets: Bool {
    let isHello = kind == FrameKind.hello.rawValue
    let plain = NativeLayout.headerLength + (isHello ? 0 : 2 + Self.plainMetadata)
    return checkedEnd - start > plain
  }

  /// The positions of credentials, as far as the frame is in `bytes`.
  func secrets(in bytes: UnsafeRawBufferPointer) -> [Range<Int>] {
    let isHello = kind == FrameKind.hello.rawValue
    let begin = start + NativeLayout.headerLength + (isHello ? 0 : 2)
    let end = min(checkedEnd, bytes.count)
    guard begin < end else { return [] }
    if isHello {
      return Self.secretFields.flatMap {
        unsafe Self.values(of: $0, in: bytes, begin..<end).all
      }
    }
    return unsafe Self.credentials(in: bytes, begin..<end)
  }

  /// The numbers of the fields: in a hello, the credential and what names the client, which is a
  /// secret too; and the entries of metadata.
  private static let secretFields: [UInt32] = [7, 12]
  private static let entriesField: UInt32 = 4
  /// The names of metadata entries that are credentials, in lower case.
  private static let credentialNames: Set<String> = [
    "authorization", "proxy-authorization", "cookie", "set-cookie",
  ]
  private static let credentialLengths = Set(credentialNames.map(\.utf8.count))

  /// The values of the entries that are credentials, and whatever cannot be read.
  private static func credentials(
    in bytes: UnsafeRawBufferPointer, _ block: Range<Int>
  ) -> [Range<Int>] {
    let entries = unsafe values(of: entriesField, in: bytes, block)
    return entries.unread
      + entries.found.flatMap { entry -> [Range<Int>] in
        let names = unsafe values(of: 1, in: bytes, entry)
        guard names.unread.isEmpty else { return [entry] }
        let isCredential = names.found.contains { name in
          guard credentialLengths.contains(name.count) else { return false }
          let text = unsafe String(decoding: bytes[name], as: UTF8.self)
          return credentialNames.contains(text.lowercased())
        }
        return isCredential ? unsafe values(of: 2, in: bytes, entry).all : []
      }
  }

  /// The values of a field, and the rest behind what cannot be read.
  private struct Values {
    var found: [Range<Int>] = []
    var unread: [Range<Int>] = []
    var all: [Range<Int>] { found + unread }
  }

  /// The values of the fields with this number in a message of Protocol Buffers.
  private static func values(
    of number: UInt32, in bytes: UnsafeRawBufferPointer, _ message: Range<Int>
  ) -> Values {
    let part = unsafe UnsafeRawBufferPointer(rebasing: bytes[message])
    return unsafe part.withMemoryRebound(to: UInt8.self) { part -> Values in
      var reader = unsafe ProtobufReader(control: part)
      var values = Values()
      do throws(BodyError) {
        while let field = try reader.next() {
          guard field == number else {
            try reader.skip()
            continue
          }
          let value = try reader.bytesInPlace()
          values.found.append(
            message.lowerBound + value.lowerBound..<message.lowerBound + value.upperBound)
        }
      } catch {
        values.unread = [message.lowerBound + reader.start..<message.upperBound]
      }
      return values
    }
  }
}
