// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCLibrary

/// The name of a recording's file, `longlink-TIME-CAUSE.pcapng`. Other files are none of ours.
struct RecordingName: Comparable {
  private static let start = "longlink-"
  private static let end = ".pcapng"
  /// The length of a time, such as `20261127T203100.123456Z`.
  private static let timeLength = 23

  let text: String
  private let time: Substring
  private let isOfOperator: Bool

  /// Reads the name of a file; nil if it is not that of a recording.
  init?(_ text: String) {
    guard text.hasPrefix(Self.start), text.hasSuffix(Self.end) else { return nil }
    let middle = text.dropFirst(Self.start.count).dropLast(Self.end.count)
    let time = middle.prefix(Self.timeLength)
    let rest = middle.dropFirst(Self.timeLength)
    guard time.utf8.elementsEqual("00000000T000000.000000Z".utf8, by: Self.fits),
      rest.first == "-", rest.count > 1,
      rest.dropFirst().utf8.allSatisfy({ Self.isLetter($0) || $0 == UInt8(ascii: "_") })
    else { return nil }
    self.text = text
    self.time = time
    isOfOperator = rest.dropFirst() == RecordingGate.operatorCause
  }

  /// Makes a name; `microseconds` are those since 1970.
  init(_ cause: String, at microseconds: Int64) {
    time = Self.text(of: microseconds)[...]
    text = "\(Self.start)\(time)-\(cause)\(Self.end)"
    isOfOperator = cause == RecordingGate.operatorCause
  }

  /// Whether a file goes before another one if there are too many: the older one does, those that
  /// operators asked for last.
  static func < (one: RecordingName, other: RecordingName) -> Bool {
    (one.isOfOperator ? 1 : 0, one.time, one.text)
      < (other.isOfOperator ? 1 : 0, other.time, other.text)
  }

  private static func fits(_ byte: UInt8, _ pattern: UInt8) -> Bool {
    pattern == UInt8(ascii: "0") ? 0x30...0x39 ~= byte : byte == pattern
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    0x41...0x5A ~= byte || 0x61...0x7A ~= byte
  }

  // MARK: Time

  /// The time of the calendar, in microseconds since 1970.
  static var now: Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
  }

  /// A time in UTC, as names have it.
  private static func text(of microseconds: Int64) -> String {
    var seconds = time_t(microseconds / 1_000_000)
    var parts = unsafe tm()
    unsafe gmtime_r(&seconds, &parts)
    func digits(_ number: some BinaryInteger, _ count: Int) -> String {
      let text = "\(number)"
      return String(repeating: "0", count: max(0, count - text.count)) + text
    }
    return unsafe digits(parts.tm_year + 1_900, 4) + digits(parts.tm_mon + 1, 2)
      + digits(parts.tm_mday, 2) + "T" + digits(parts.tm_hour, 2) + digits(parts.tm_min, 2)
      + digits(parts.tm_sec, 2) + "." + digits(microseconds % 1_000_000, 6) + "Z"
  }
}
#endif
