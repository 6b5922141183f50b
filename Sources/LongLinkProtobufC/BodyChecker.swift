public import LongLinkCore

/// Walks a body against the description of its message, before libprotobuf-c sees it.
///
/// libprotobuf-c 1.4 recurses as deep as a body says, takes any bytes for a string and ends strings
/// at NUL. What passes here is safe to unpack, and means there what other implementations read.
@usableFromInline
enum BodyChecker {
  /// How many messages may stand inside each other below the outermost: the default of Google's
  /// implementations.
  static let maximumDepth = 100

  /// Checks the message that stands at `range`, and those inside it.
  @usableFromInline
  static func check(
    _ bytes: Span<UInt8>,
    in range: Range<Int>,
    against message: MessageDescription,
    depth: Int = 0
  ) throws(BodyError) {
    var reader = WireReader(range)
    var seen = FieldSet()
    while !reader.isAtEnd {
      let start = reader.position
      let (number, wireType) = try reader.tag(in: bytes)
      guard let field = message.field(number) else {
        try reader.skip(wireType, in: bytes)
        continue
      }
      guard wireType == .lengthDelimited else {
        guard wireType == field.wireType else { throw wrongType(number, at: start) }
        try reader.skip(wireType, in: bytes)
        continue
      }
      let value = try reader.lengthDelimited(in: bytes)
      switch field.content {
      case .bytes:
        break
      case .string:
        try checkText(bytes, in: value)
      case .scalar:
        guard field.isRepeated else { throw wrongType(number, at: start) }
        try checkPacked(bytes, in: value, as: field.wireType)
      case .message(let inner):
        // libprotobuf-c 1.4 loses values where it merges two occurrences.
        guard field.isRepeated || seen.insert(field.index) else {
          throw BodyError(.notRepresentable, at: start, detail: "field \(number) stands twice")
        }
        guard depth < maximumDepth else { throw BodyError(.tooDeep, at: start) }
        try check(bytes, in: value, against: inner, depth: depth + 1)
      }
    }
  }

  private static func wrongType(_ number: UInt32, at offset: Int) -> BodyError {
    BodyError(.wrongType, at: offset, detail: "field \(number)")
  }

  private static func checkPacked(
    _ bytes: Span<UInt8>,
    in range: Range<Int>,
    as wireType: WireType
  ) throws(BodyError) {
    var reader = WireReader(range)
    while !reader.isAtEnd {
      try reader.skip(wireType, in: bytes)
    }
  }

  private static func checkText(
    _ bytes: Span<UInt8>,
    in range: Range<Int>
  ) throws(BodyError) {
    for index in range where bytes[index] == 0 {
      throw BodyError(.interiorNUL, at: index)
    }
    if let invalid = bytes.extracting(range).firstInvalidUTF8 {
      throw BodyError(.invalidUTF8, at: range.lowerBound + invalid)
    }
  }
}

/// The fields of one message that have been met, by their place in its description.
private struct FieldSet {
  private var first: UInt64 = 0
  /// For messages of more than 64 fields alone, so that others need no memory.
  private var further: [Int] = []

  /// False where the field was there already.
  mutating func insert(_ index: Int) -> Bool {
    if index < 64 {
      let bit = UInt64(1) << UInt64(index)
      defer { first |= bit }
      return first & bit == 0
    }
    if further.contains(index) { return false }
    further.append(index)
    return true
  }
}

extension Span<UInt8> {
  /// Where the first byte stands that is not part of UTF-8, nil where all are.
  fileprivate var firstInvalidUTF8: Int? {
    guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
      // Says only that something is wrong, and copies the text to find out.
      let isValid = unsafe withUnsafeBufferPointer { text in
        unsafe String(validating: text, as: UTF8.self) != nil
      }
      return isValid ? nil : 0
    }
    do throws(UTF8.ValidationError) {
      _ = try UTF8Span(validating: self)
      return nil
    } catch {
      return error.byteOffsets.lowerBound
    }
  }
}
