// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import LongLinkCommandSupport

/// The source of a request's body; without one, the body is empty.
struct RequestBody: ParsableArguments {
  @Argument(help: ArgumentHelp("Read the body from standard input.", valueName: "-"))
  var standardInput: String?

  @Option(parsing: .unconditional, help: "The body as text.")
  var text: String?

  @Option(
    parsing: .unconditional, help: "The body as hexadecimal digits.", transform: Values.hex)
  var hex: [UInt8]?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Read the body from a file.", valueName: "path"))
  var file: String?

  func validate() throws {
    if let standardInput, standardInput != "-" {
      throw ValidationError("Unexpected argument '\(standardInput)'; '-' reads standard input.")
    }
    let given = [standardInput != nil, text != nil, hex != nil, file != nil]
    guard given.count(where: { $0 }) <= 1 else {
      throw ValidationError("Give only one of --text, --hex, --file and '-'.")
    }
  }

  func read() throws -> [UInt8] {
    if let text { return Array(text.utf8) }
    if let hex { return hex }
    do {
      if let file { return try [UInt8](Data(contentsOf: URL(fileURLWithPath: file))) }
      if standardInput != nil {
        return try [UInt8](FileHandle.standardInput.readToEnd() ?? Data())
      }
    } catch {
      let source = file.map { "'\($0)'" } ?? "standard input"
      throw Output.usageError("cannot read \(source): \(error.localizedDescription)")
    }
    return []
  }
}
