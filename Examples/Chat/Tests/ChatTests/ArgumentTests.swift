// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// The command lines of both programs.
@Suite struct ArgumentTests {
  @Test(arguments: [
    ("Chat", ["zoe", "lobby", "127.0.0.1", "notaport"], "notaport"),
    ("Chat", ["zoe", "lobby", "127.0.0.1", "65536"], "65536"), ("Chat", [], "<name>"),
    ("ChatServer", ["notaport"], "notaport"),
  ])
  func `wrong arguments are refused and named`(
    name: String, arguments: [String], word: String
  ) throws {
    let process = Process()
    let errors = Pipe()
    process.executableURL = program(name)
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    process.standardError = errors
    try process.run()
    let text = try errors.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    #expect(process.terminationStatus == 64)
    #expect(String(decoding: text, as: UTF8.self).contains(word))
  }
}
