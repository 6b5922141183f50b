// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
package import LongLink

/// Parses arguments. An invalid one ends the program with exit code 64 and the reason.
package enum Values {
  package static func messageType(_ text: String) throws -> MessageType {
    guard let number = UInt32(text), let type = MessageType(rawValue: number) else {
      throw ValidationError("'\(text)' is not a message type: a number from 0 to 16777215.")
    }
    return type
  }

  /// A port to connect to.
  package static func port(_ text: String) throws -> UInt16 {
    guard let port = UInt16(text), port > 0 else {
      throw ValidationError("'\(text)' is not a port: a number from 1 to 65535.")
    }
    return port
  }

  /// A port to listen on.
  package static func listeningPort(_ text: String) throws -> UInt16 {
    guard let port = UInt16(text) else {
      throw ValidationError(
        "'\(text)' is not a port: a number from 1 to 65535, or 0 for a free one.")
    }
    return port
  }

  package static func host(_ text: String) throws -> String {
    guard !text.isEmpty else { throw ValidationError("The host is empty.") }
    return text
  }

  /// A time above zero, in seconds, perhaps with a fraction.
  package static func time(_ text: String) throws -> Duration {
    let duration = try interval(text)
    guard duration > .zero else {
      throw ValidationError("'\(text)' is not a time above zero, in seconds.")
    }
    return duration
  }

  /// A time of zero or more, in seconds, perhaps with a fraction.
  package static func interval(_ text: String) throws -> Duration {
    guard let seconds = Double(text), seconds >= 0 else {
      throw ValidationError("'\(text)' is not a time in seconds.")
    }
    guard seconds <= longestTime else {
      throw ValidationError("'\(text)' is over the longest time of \(Int(longestTime)) seconds.")
    }
    return .seconds(seconds)
  }

  /// 46 days: the milliseconds on the wire have 32 bits.
  private static let longestTime = 4_000_000.0

  /// A number of at least 1.
  package static func count(_ text: String) throws -> Int {
    guard let count = Int(text), count >= 1 else {
      throw ValidationError("'\(text)' is not a number of at least 1.")
    }
    return count
  }

  /// A number of bytes, 0 included.
  package static func size(_ text: String) throws -> Int {
    guard let size = Int(text), size >= 0 else {
      throw ValidationError("'\(text)' is not a number of bytes.")
    }
    return size
  }

  /// A rate per second, above zero.
  package static func rate(_ text: String) throws -> Double {
    guard let rate = Double(text), rate > 0, rate <= 1e9 else {
      throw ValidationError("'\(text)' is not a number per second, above zero.")
    }
    return rate
  }

  /// Bytes in hexadecimal, two digits each.
  package static func hex(_ text: String) throws -> [UInt8] {
    let digits = Array(text.utf8)
    guard digits.count.isMultiple(of: 2) else {
      throw ValidationError("'\(text)' has an odd number of hexadecimal digits.")
    }
    return try stride(from: 0, to: digits.count, by: 2).map { index in
      guard let high = digit(digits[index]), let low = digit(digits[index + 1]) else {
        throw ValidationError("'\(text)' is not hexadecimal.")
      }
      return high << 4 | low
    }
  }

  private static func digit(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
