// SPDX-License-Identifier: Apache-2.0

/// Parses dumps of bytes.
enum HexDump {
  /// The bytes that one side of a connection sent.
  struct Stream: Equatable {
    /// The sender and the receiver; nil if the input does not name them.
    var label: String?
    var bytes: [UInt8] = []
    /// The offsets at which sent bytes are missing.
    var gaps: [Int] = []
  }

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// Returns the streams in a dump (plain digits, `xxd`, `hexdump -C`, or packets of `tcpdump` or
  /// `tshark`, joined). Any other input is returned as it is.
  static func streams(_ input: [UInt8]) throws -> [Stream] {
    // The other output of tshark is not all ASCII.
    let isText = input.allSatisfy { $0 >= 0x20 && $0 != 0x7F || [9, 10, 13].contains($0) }
    guard isText, let text = String(validating: input, as: UTF8.self) else {
      return [Stream(bytes: input)]
    }
    let lines = text.split(whereSeparator: \.isNewline)
    if let streams = try PacketDump.streams(lines) { return streams }
    // The last line of `hexdump -C` is only an offset.
    let isCanonical = lines.contains(where: isCanonical)
    var bytes: [UInt8] = []
    for line in lines where !isCanonical || line.count != 8 {
      guard let part = digits(line) else {
        // Text that is not a dump is the stream itself.
        if bytes.isEmpty { return [Stream(bytes: input)] }
        throw Failure(
          description: "this line does not belong to a hex dump: \(line.prefix(80))")
      }
      bytes += part
    }
    guard !bytes.isEmpty else { throw Failure(description: "there are no bytes in it") }
    return [Stream(bytes: bytes)]
  }

  /// The bytes of a line; nil if it is not a line of a dump.
  static func digits(_ line: Substring) -> [UInt8]? {
    var rest = line
    if isCanonical(line) {
      // `hexdump -C`: offset, two spaces, digits, and the text between bars.
      rest = line.prefix { $0 != "|" }.drop { $0 != " " }
    } else if let colon = line.firstIndex(of: ":") {
      // `xxd` and `tcpdump`: offset, colon, digits, two spaces, and the text.
      guard isHexadecimal(line[..<colon].drop { $0 == "\t" || $0 == " " }) else { return nil }
      rest = line[line.index(after: colon)...].drop { $0 == " " }
      rest = upToTwoSpaces(rest)
    }
    return bytes(rest.filter { $0 != " " && $0 != "\t" })
  }

  private static func isCanonical(_ line: Substring) -> Bool {
    isHexadecimal(line.prefix(8)) && line.dropFirst(8).hasPrefix("  ") && line.contains("|")
  }

  private static func upToTwoSpaces(_ line: Substring) -> Substring {
    var last: Character?
    for index in line.indices {
      if line[index] == " ", last == " " { return line[..<index] }
      last = line[index]
    }
    return line
  }

  private static func isHexadecimal(_ text: Substring) -> Bool {
    let digits = text.hasPrefix("0x") ? text.dropFirst(2) : text
    return !digits.isEmpty && digits.allSatisfy(\.isHexDigit)
  }

  /// The bytes of hexadecimal digits; nil for other characters or an odd number of digits.
  static func bytes(_ digits: String) -> [UInt8]? {
    let values = digits.map(\.hexDigitValue)
    guard values.count.isMultiple(of: 2) else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: values.count, by: 2) {
      guard let high = values[index], let low = values[index + 1] else { return nil }
      bytes.append(UInt8(high << 4 | low))
    }
    return bytes
  }
}
