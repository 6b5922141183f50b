// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkReaders

extension JSONReader {
  /// Reads up to the end of the next element, and returns it; nil if more bytes are needed, or at
  /// the end.
  mutating func advance() throws(ReaderError) -> [UInt8]? {
    while true {
      switch phase {
      case .mark(let count):
        guard try skipMark(count) else { return try needBytes() }
      case .inValue(let role):
        guard try skip() else { return try needBytes() }
        if let element = valueEnded(role) { return element }
      case .inScalar(let role):
        guard try skipScalar() else { return try needBytes() }
        if let element = valueEnded(role) { return element }
      case .inName:
        guard try skip() else { return try needBytes() }
        phase = .colon(role(ofName: takeKept()))
      default:
        guard let byte = nextByte() else { return try needBytes() }
        try take(byte)
      }
    }
  }

  /// Skips white space and returns the byte at `place`; nil if there is none yet.
  private mutating func nextByte() -> UInt8? {
    while place < bytes.count {
      let byte = bytes[place]
      switch byte {
      case UInt8(ascii: "\n"):
        if case .between = phase { phase = .between(hasLineEnd: true) }
      case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"):
        break
      default:
        return byte
      }
      place += 1
    }
    return nil
  }

  /// Skips the next byte of a byte order mark, which RFC 8259 allows to ignore. Returns false if
  /// more bytes are needed.
  private mutating func skipMark(_ count: Int) throws(ReaderError) -> Bool {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let byte = place < bytes.count ? bytes[place] : nil
    if byte == mark[count] {
      place += 1
      phase = count + 1 < mark.count ? .mark(count + 1) : firstPhase
    } else if count == 0, byte != nil || isFinished {
      phase = firstPhase
    } else if byte != nil {
      throw malformed()
    } else {
      return false
    }
    return true
  }

  private var firstPhase: Phase {
    if shape.separation != nil { return .between(hasLineEnd: true) }
    return .value(.enter, isFirst: false)
  }

  private mutating func take(_ byte: UInt8) throws(ReaderError) {
    let isEnd = byte == UInt8(ascii: "]") || byte == UInt8(ascii: "}")
    switch phase {
    case .value(_, isFirst: true) where isEnd, .name(isFirst: true) where isEnd:
      try close(byte)
    case .value(let role, _):
      try begin(role, byte)
    case .name:
      guard byte == UInt8(ascii: "\"") else { throw malformed() }
      start = place
      inside = cll_json_place()
      phase = .inName
    case .colon(let role):
      guard byte == UInt8(ascii: ":") else { throw malformed() }
      place += 1
      phase = .value(role, isFirst: false)
    case .separator where isEnd:
      try close(byte)
    case .separator:
      guard byte == UInt8(ascii: ",") else { throw malformed() }
      place += 1
      phase = isInArray ? .value(elementRole, isFirst: false) : .name(isFirst: false)
    case .between(let hasLineEnd):
      guard hasLineEnd || shape.separation == .any else { throw malformed() }
      try begin(.deliver, byte)
    default:
      throw malformed()
    }
  }

  // MARK: - Arrays and objects on the path

  private var isInArray: Bool { shape.steps[level - 1] == .each }

  /// How the elements of the open array are handled.
  private var elementRole: Role { level == shape.steps.count ? .deliver : .enter }

  private mutating func begin(_ role: Role, _ byte: UInt8) throws(ReaderError) {
    var role = role
    let isArray = byte == UInt8(ascii: "[")
    if role == .enter, isArray || byte == UInt8(ascii: "{") {
      if isArray == (shape.steps[level] == .each) { return try enter(isArray) }
    }
    // Something else is at the path. Many servers write `null` for an empty array.
    if role == .enter {
      role = .skip
      let isLast = level == shape.steps.count - 1 && shape.steps[level] == .each
      if isLast, byte == UInt8(ascii: "n") { hasFoundArray = true }
    }
    start = role == .deliver ? place : nil
    switch byte {
    case UInt8(ascii: "["), UInt8(ascii: "{"), UInt8(ascii: "\""):
      inside = cll_json_place()
      phase = .inValue(role)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "t"),
      UInt8(ascii: "f"), UInt8(ascii: "n"):
      start = place
      phase = .inScalar(role)
    default:
      throw malformed()
    }
  }

  private mutating func enter(_ isArray: Bool) throws(ReaderError) {
    guard level < limits.depth else { throw ReaderError(.tooDeep, at: offset + place) }
    level += 1
    place += 1
    if isArray, level == shape.steps.count { hasFoundArray = true }
    phase = isArray ? .value(elementRole, isFirst: true) : .name(isFirst: true)
  }

  private mutating func close(_ byte: UInt8) throws(ReaderError) {
    guard isInArray == (byte == UInt8(ascii: "]")) else { throw malformed() }
    level -= 1
    place += 1
    _ = valueEnded(.enter)
  }

  private func role(ofName name: [UInt8]) -> Role {
    guard case .member(let wanted) = shape.steps[level - 1] else { return .skip }
    return JSONName.matches(name, wanted) ? .enter : .skip
  }

  // MARK: - Values

  /// Goes to the end of an array, object or string; returns whether it was reached.
  private mutating func skip() throws(ReaderError) -> Bool {
    // All that was fed is initialized.
    let count = unsafe bytes.withUnsafeBytes { bytes in
      guard let first = bytes.baseAddress else { return 0 }
      return unsafe cll_json_skip(
        &inside, first + place, bytes.count - place, limits.depth - level)
    }
    place += count
    try checkSize()
    if inside.is_too_deep { throw ReaderError(.tooDeep, at: offset + place - 1) }
    return inside.has_ended
  }

  /// Goes to the byte after a number or word; returns whether it was reached.
  private mutating func skipScalar() throws(ReaderError) -> Bool {
    while place < bytes.count, !JSONScalar.isEnd(bytes[place]) { place += 1 }
    try checkSize()
    let isAtEnd = place < bytes.count
    guard isAtEnd || isFinished else { return false }
    // More digits may be missing, which would make another number.
    if !isAtEnd, level > 0 { throw ReaderError(.truncated, at: offset + place) }
    guard JSONScalar.isComplete(bytes[(start ?? place)..<place]) else {
      throw isAtEnd ? malformed() : ReaderError(.truncated, at: offset + place)
    }
    return true
  }

  private mutating func checkSize() throws(ReaderError) {
    guard let start, place - start > limits.elementBytes else { return }
    throw ReaderError(.elementTooLarge, at: offset + start)
  }

  private mutating func valueEnded(_ role: Role) -> [UInt8]? {
    if level > 0 {
      phase = .separator
    } else {
      phase = shape.separation == nil ? .end : .between(hasLineEnd: false)
    }
    guard role == .deliver else {
      start = nil
      return nil
    }
    return takeKept()
  }

  private mutating func takeKept() -> [UInt8] {
    let kept = bytes[(start ?? place)..<place]
    start = nil
    return Array(kept)
  }

  // MARK: - The end

  private func malformed() -> ReaderError { ReaderError(.malformed, at: offset + place) }

  private func needBytes() throws(ReaderError) -> [UInt8]? {
    guard isFinished else { return nil }
    switch phase {
    case .between: return nil
    case .end where hasFoundArray: return nil
    case .end: throw ReaderError(.notFound, detail: "the document has no array at the path")
    default: throw ReaderError(.truncated, at: offset + bytes.count)
    }
  }
}
