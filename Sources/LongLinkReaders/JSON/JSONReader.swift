// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkReaders

/// Splits a JSON document into elements while the document arrives.
///
/// Feed it bytes, in parts of any size, and take elements until there are none. Each is returned as
/// the bytes of one JSON value, for any decoder:
///
/// ```swift
/// var reader = JSONReader(.path("items[*]"))
/// for part in parts {
///   reader.feed(part)
///   while let element = try reader.next() { decode(element) }
/// }
/// reader.finish()
/// while let element = try reader.next() { decode(element) }
/// ```
///
/// An element is returned as soon as its last byte has been fed, except numbers and words, which
/// end before the next byte. The document is split only as far as elements are taken; bytes
/// that were fed and not looked at are kept. It makes no difference how the document is cut into
/// parts.
///
/// Only what leads to the elements is checked: brackets, commas, strings. What is inside an element
/// is for its decoder to check. Only UTF-8 can be read.
public struct JSONReader: Sendable {
  /// The part of the document that is expected next.
  enum Phase {
    /// The document, perhaps after a byte order mark. The number of bytes of the mark that were
    /// read.
    case mark(Int)
    /// A value, which begins with the next byte other than white space. `isFirst`: or the end of
    /// the array.
    case value(Role, isFirst: Bool)
    /// The name of a member. `isFirst`: or the end of the object.
    case name(isFirst: Bool)
    case colon(Role)
    /// A comma, or the end of the array or object.
    case separator
    /// The rest of an array, object or string.
    case inValue(Role)
    /// The rest of a number or word.
    case inScalar(Role)
    case inName
    /// The place where another value of the document, or its end, may follow.
    case between(hasLineEnd: Bool)
    /// White space.
    case end
  }

  /// How a value is handled.
  enum Role {
    /// The value is an array or object on the path.
    case enter
    case deliver
    case skip
  }

  let shape: Shape
  let limits: Limits
  var phase = Phase.mark(0)
  /// The number of open arrays and objects on the path.
  var level = 0
  /// The position inside an array, object or string that is skipped or returned.
  var inside = cll_json_place()
  /// Whether an array at the path was found.
  var hasFoundArray = false

  /// The bytes of the document that are still needed.
  var bytes: [UInt8] = []
  /// The position in the document of the first byte in `bytes`.
  var offset = 0
  /// The index in `bytes` of the next byte to look at.
  var place = 0
  /// The index in `bytes` where the current element or name begins; nil while neither has begun.
  var start: Int?
  private(set) var isFinished = false
  private var failure: ReaderError?

  /// Makes a reader of one document.
  public init(_ shape: Shape, limits: Limits = Limits()) {
    self.shape = shape
    self.limits = limits
  }

  /// Adds the next bytes of the document, which are copied. Traps after `finish()`.
  public mutating func feed(_ bytes: RawSpan) {
    unsafe bytes.withUnsafeBytes { bytes in
      unsafe feed(bytes)
    }
  }

  /// Adds the next bytes of the document, which are copied. Traps after `finish()`.
  public mutating func feed(_ bytes: some Sequence<UInt8>) {
    precondition(!isFinished, "the document has already been finished")
    guard failure == nil else { return }
    dropUsed()
    self.bytes.append(contentsOf: bytes)
  }

  /// Ends the document: it has no more bytes.
  public mutating func finish() {
    isFinished = true
  }

  /// Returns the bytes of the next element; nil if more bytes are needed, and nil after `finish()`
  /// if the document was complete.
  ///
  /// Throws `ReaderError` if the document is broken, incomplete or beyond a limit, once all
  /// elements before the fault were returned. Every later call throws the same error.
  public mutating func next() throws(ReaderError) -> [UInt8]? {
    if let failure { throw failure }
    do throws(ReaderError) {
      return try advance()
    } catch {
      failure = error
      bytes = []
      throw error
    }
  }

  private mutating func dropUsed() {
    let used = start ?? place
    let left = bytes.count - used
    // Moves few bytes, or no more than it drops, so that the time is proportional to the document.
    guard used > 0, left <= used || left <= 4096 else { return }
    if left == 0 {
      // The memory of a large element is not kept.
      bytes.removeAll(keepingCapacity: bytes.capacity <= 128 << 10)
    } else {
      bytes.removeFirst(used)
    }
    offset += used
    place -= used
    if start != nil { start = 0 }
  }
}
