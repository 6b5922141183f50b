// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension DialectCodec {
  /// Whether a body can be sent between delimiters.
  package func isAllowed(_ body: UnsafeRawBufferPointer) -> Bool {
    guard outgoing.inside == .refused else { return true }
    guard unsafe outgoing.delimiter(in: body, from: 0) == nil else { return false }
    // The end of the body and the delimiter after it must not form an earlier delimiter.
    let delimiter = outgoing.delimiter
    for begin in max(0, body.count - delimiter.count + 1)..<body.count {
      let left = body.count - begin
      let isEarly = delimiter.indices.allSatisfy { index in
        let byte = unsafe index < left ? body[begin + index] : delimiter[index - left]
        return byte == delimiter[index]
      }
      if isEarly { return false }
    }
    return true
  }

  /// Escapes a body in place, and returns the number of added bytes. After the body there must be
  /// as much room as it has bytes.
  func escape(_ body: Range<Int>, _ frame: UnsafeMutableRawBufferPointer) -> Int {
    guard case .escaped(let escape) = outgoing.inside else { return 0 }
    let first = outgoing.delimiter[0]
    var added = 0
    for index in body where unsafe frame[index] == escape || frame[index] == first { added += 1 }
    precondition(body.upperBound + added <= frame.count, "no room was made for escaping")
    // Backwards, so that no byte is overwritten before it has moved.
    var to = body.upperBound + added
    for from in body.reversed() where to > from {
      let byte = unsafe frame[from]
      to -= 1
      unsafe frame[to] = byte
      if byte == escape || byte == first {
        to -= 1
        unsafe frame[to] = escape
      }
    }
    return added
  }
}

extension FramePlan {
  /// Whether a delimiter is at this position, which must have room for it.
  @inline(__always)
  func isDelimiter(_ bytes: UnsafeRawBufferPointer, at place: Int) -> Bool {
    for (index, byte) in delimiter.enumerated() where unsafe bytes[place + index] != byte {
      return false
    }
    return true
  }

  /// The position of the first delimiter that begins at `start` or later.
  func delimiter(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
    var place = start
    while place + delimiter.count <= bytes.count {
      if unsafe isDelimiter(bytes, at: place) { return place }
      place += 1
    }
    return nil
  }
}
