// SPDX-License-Identifier: Apache-2.0

package import ArgumentParser
import Foundation
import Logging
import LongLinkCore

/// Standard output and standard error.
package enum Output {
  /// Writes bytes to standard output at once. If the reader is gone, the program ends.
  package static func write(_ bytes: [UInt8]) throws {
    try FileProblem.naming("standard output") {
      try FileHandle.standardOutput.write(contentsOf: Data(bytes))
    }
  }

  /// Writes a line to standard output at once.
  package static func line(_ text: String) throws {
    try write(Array("\(text)\n".utf8))
  }

  /// Writes what a peer sent to standard output at once, as one line, with escapes for control
  /// characters and for bytes that are not UTF-8.
  package static func line(ofPeer bytes: [UInt8]) throws {
    // Escapes can make six times the size of it.
    try PeerText.pieces(of: bytes) { try write(Array($0.utf8)) }
    try line("")
  }

  /// Writes a value to standard output at once, as a line of JSON with sorted keys.
  package static func json(_ value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    try line(String(decoding: try encoder.encode(value), as: UTF8.self))
  }

  /// Writes a line to standard error, with options in place of the library's settings.
  package static func error(_ text: String) {
    let text = printable(OptionNames.inserted(into: text))
    try? FileHandle.standardError.write(
      contentsOf: Data("\(ProcessInfo.processInfo.processName): \(text)\n".utf8))
  }

  /// Replaces the current line on standard error.
  package static func progress(_ text: String) {
    try? FileHandle.standardError.write(contentsOf: Data("\r\u{1B}[K\(text)".utf8))
  }

  /// The text with escapes for what controls a terminal, or reorders a line.
  ///
  /// It is the last line of defence, and neither cuts the text nor keeps it on one line. What a
  /// peer said is made safe by `PeerText` before it becomes part of a text.
  package static func printable(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar.properties.generalCategory {
      case .control where scalar != "\n" && scalar != "\t", .format, .lineSeparator,
        .paragraphSeparator:
        result += scalar.escaped(asASCII: true)
      default:
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// Prints what is wrong with the arguments; throw the exit code that it returns.
  package static func usageError(_ text: String) -> ExitCode {
    error(text)
    return ExitCode(ExitStatus.usage)
  }

  /// Makes every logger write to standard error.
  package static func logToStandardError() {
    LoggingSystem.bootstrap { label in StreamLogHandler.standardError(label: label) }
  }
}
