// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The position of the first error in JSON data.
struct JSONFault {
  private var line = 1
  private var column = 1
  private var reason = "this is not JSON"

  /// `JSONDecoder` reports no position; `JSONSerialization` has the offset in its message.
  init(in data: Data) {
    guard String(validating: data, as: UTF8.self) != nil else {
      reason += ": it is not UTF-8"
      return
    }
    var place = data.count
    do {
      _ = try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)
    } catch {
      let words = (error as NSError).userInfo[NSDebugDescriptionErrorKey] as? String ?? ""
      if let match = words.firstMatch(of: /around character ([0-9]+)/), let offset = Int(match.1) {
        place = offset
      }
      reason += place < data.count ? "" : ": it ends prematurely"
    }
    for byte in data.prefix(place) {
      // A column is a character, whose further bytes are continuations (RFC 3629).
      if byte == UInt8(ascii: "\n") {
        (line, column) = (line + 1, 1)
      } else if byte & 0xC0 != 0x80 {
        column += 1
      }
    }
  }

  /// The position and the reason, to append to a file name.
  var text: String { ":\(line):\(column): \(reason)" }
}
