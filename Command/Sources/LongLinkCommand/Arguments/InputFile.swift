// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport

/// A file that an argument names; `-` is standard input.
struct InputFile {
  private let path: String

  init(_ path: String) {
    self.path = path
  }

  /// The file for messages.
  var name: String { path == "-" ? "standard input" : "'\(path)'" }

  /// Reads all of it. Says what is wrong if it cannot, and throws the exit code.
  func read() throws -> [UInt8] {
    do {
      if path == "-" { return try [UInt8](FileHandle.standardInput.readToEnd() ?? Data()) }
      return try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))
    } catch {
      throw Output.usageError("cannot read \(name): \(error.localizedDescription)")
    }
  }
}
