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
struct PartWriter {
  private let recorder: Recorder
  private let event: RecordedEvent
  private let link: UInt32
  private let now: LinkInstant
  /// Where the record begins in the recorder's segment.
  private var start: Int

  init(
    _ event: RecordedEvent, _ count: Int, of link: UInt32, at now: LinkInstant,
    in recorder: Recorder
  ) {
    self.recorder = recorder
    self.event = event
    self.link = link
    self.now = now
    recorder.note(event, of: link, at: now, UInt64(count))
    start = recorder.used - 24
  }

  /// Ends the record: writes its size.
  func end() {
    // The head of the record is in the segment.
    unsafe recorder.segment.bytes.storeBytes(
      of: UInt16(truncatingIfNeeded: recorder.used - start), toByteOffset: start, as: UInt16.self)
  }

  /// Appends the parts of the frames in `range` of `bytes`; a frame begins at `offset`. Returns the
  /// rest of the last frame, if it goes on behind the range.
  mutating func append(
    _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, from offset: Int, _ sender: Role,
    whole: Bool
  ) -> Recorder.Rest? {
    var offset = offset
    while offset < range.upperBound {
      let first = max(offset, range.lowerBound)
      guard bytes.count - offset >= NativeLayout.headerLength else {
        // A head that has not arrived completely.
        unsafe append(
          UnsafeRawBufferPointer(rebasing: bytes[first..<range.upperBound]), leftOut: 0,
          begins: first == offset, ends: false)
        return nil
      }
      // Its 16 bytes are there.
      let frame = unsafe RecordedFrame(bytes, at: offset, from: sender, whole: whole)
      if frame.end > range.lowerBound {
        let last = min(frame.end, range.upperBound)
        let kept = max(first, min(frame.keptEnd, last))
        unsafe append(
          bytes, first..<kept, frame, leftOut: last - kept, begins: first == offset,
          ends: last == frame.end)
        if frame.end > range.upperBound {
          let rest = max(0, frame.keptEnd - max(range.upperBound, first))
          return Recorder.Rest(kept: rest, leftOut: frame.end - range.upperBound - rest)
        }
      }
      offset = frame.end
    }
    return nil
  }

  /// Appends a part of a frame, with zeros in place of its secrets.
  @inline(__always)
  private mutating func append(
    _ bytes: UnsafeRawBufferPointer, _ kept: Range<Int>, _ frame: RecordedFrame, leftOut: Int,
    begins: Bool, ends: Bool
  ) {
    let part = unsafe UnsafeRawBufferPointer(rebasing: bytes[kept])
    guard frame.mayHaveSecrets else {
      unsafe append(part, leftOut: leftOut, begins: begins, ends: ends)
      return
    }
    var copy = unsafe [UInt8](part)
    for secret in unsafe frame.secrets(in: bytes) {
      for index in secret.clamped(to: kept) { copy[index - kept.lowerBound] = 0 }
    }
    unsafe copy.withUnsafeBytes {
      unsafe append($0, leftOut: leftOut, begins: begins, ends: ends)
    }
  }

  /// Appends a part of a frame.
  @inline(__always)
  mutating func append(
    _ kept: UnsafeRawBufferPointer, leftOut: Int, begins: Bool, ends: Bool
  ) {
    let size = 8 &+ kept.count
    guard size <= recorder.segmentSize &- recorder.used else {
      unsafe appendInPieces(kept, leftOut: leftOut, begins: begins, ends: ends)
      return
    }
    let word =
      UInt64(truncatingIfNeeded: kept.count) | (begins ? Recorder.begins : 0)
      | (ends ? Recorder.ends : 0) | UInt64(truncatingIfNeeded: leftOut) << 32
    // There is room for the part.
    let place = unsafe recorder.segment.bytes + recorder.used
    unsafe place.storeBytes(of: word, as: UInt64.self)
    if let source = kept.baseAddress {
      unsafe (place + 8).copyMemory(from: source, byteCount: kept.count)
    }
    recorder.used &+= size
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
      if 8 + count > recorder.segmentSize - recorder.used { goOn() }
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
    recorder.note(event == .received ? .receivedMore : .wroteMore, of: link, at: now)
    start = recorder.used - RecorderRecord.headSize
  }
}

/// What is recorded of a frame: its head and metadata, the bodies of control frames, and no secret.
struct RecordedFrame {
  /// The positions of the frame's first byte, and behind the last that is kept, and the last.
  let start: Int
  let keptEnd: Int
  let end: Int
  private let kind: UInt8
  private let hasMetadata: Bool

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
    switch FrameKind(wire: kind) {
    case .request, .response, .push:
      hasMetadata = byte & 0x80 != 0
      var kept = body
      if hasMetadata {
        kept += 2
        if bytes.count >= kept {
          kept += unsafe Int(bytes[body]) << 8 | Int(bytes[body + 1])
        }
      }
      keptEnd = whole ? end : min(kept, end)
    case .item, .ignorable, nil:
      hasMetadata = false
      keptEnd = whole ? end : body
    case .renewal where sender == .client:
      hasMetadata = false
      keptEnd = body
    case .end, .cancel, .credit, .renewal, .ping, .pong, .hello, .welcome, .goaway:
      hasMetadata = false
      keptEnd = min(end, body + Wire.controlLimit)
    }
  }

  /// Whether some of the kept bytes may have to be blanked. A metadata block of 16 bytes has no
  /// room for the name of a credential and its value.
  @inline(__always)
  var mayHaveSecrets: Bool {
    kind == FrameKind.hello.rawValue
      || hasMetadata && keptEnd - start > NativeLayout.headerLength + 2 + 16
  }

  /// The positions of credentials, as far as the frame is in `bytes`.
  func secrets(in bytes: UnsafeRawBufferPointer) -> [Range<Int>] {
    let body = start + NativeLayout.headerLength + (hasMetadata ? 2 : 0)
    let block = body..<max(body, min(keptEnd, bytes.count))
    return unsafe kind == FrameKind.hello.rawValue
      ? Self.secretFields.flatMap { unsafe Self.values(of: $0, in: bytes, block) }
      : Self.credentials(in: bytes, block)
  }

  /// The numbers of the fields: in a hello, the credential and what names the client, which is a
  /// secret too; and the entries of metadata.
  private static let secretFields: [UInt32] = [7, 12]
  private static let entriesField: UInt32 = 4
  /// The names of metadata entries that are credentials, in lower case.
  private static let credentialNames: Set<String> = [
    "authorization", "proxy-authorization", "cookie", "set-cookie",
  ]

  /// The values of the entries that are credentials.
  private static func credentials(
    in bytes: UnsafeRawBufferPointer, _ block: Range<Int>
  ) -> [Range<Int>] {
    unsafe values(of: entriesField, in: bytes, block).flatMap { entry -> [Range<Int>] in
      let names = unsafe values(of: 1, in: bytes, entry).map {
        unsafe String(decoding: bytes[$0], as: UTF8.self).lowercased()
      }
      guard names.contains(where: credentialNames.contains) else { return [] }
      return unsafe values(of: 2, in: bytes, entry)
    }
  }

  /// The values of the fields with this number in a message of Protocol Buffers; one that is cut
  /// off ends with the message.
  private static func values(
    of number: UInt32, in bytes: UnsafeRawBufferPointer, _ message: Range<Int>
  ) -> [Range<Int>] {
    let part = unsafe UnsafeRawBufferPointer(rebasing: bytes[message])
    return unsafe part.withMemoryRebound(to: UInt8.self) { part -> [Range<Int>] in
      var reader = unsafe ProtobufReader(control: part)
      var found: [Range<Int>] = []
      do throws(BodyError) {
        while let field = try reader.next() {
          guard field == number else {
            try reader.skip()
            continue
          }
          var begin = reader.position
          do throws(BodyError) {
            found.append(try reader.bytesInPlace())
          } catch {
            // Behind its size, the rest may be the value, cut off.
            while begin < part.count, unsafe part[begin] & 0x80 != 0 { begin += 1 }
            found.append(min(begin + 1, part.count)..<part.count)
            throw error
          }
        }
      } catch {
        // The rest is no field, or is cut off within another one.
      }
      return found.map {
        message.lowerBound + $0.lowerBound..<message.lowerBound + $0.upperBound
      }
    }
  }
}
