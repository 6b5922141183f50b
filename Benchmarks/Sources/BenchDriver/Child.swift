// SPDX-License-Identifier: Apache-2.0

import Foundation

package struct BenchError: Error, CustomStringConvertible {
  package let description: String

  init(_ description: String) { self.description = description }
}

/// A child process with pipes to its input and from its output.
package final class Child {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var rest = Data()

  package init(_ command: [String], _ placement: Placement = .free) throws {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = placement == .one ? ["taskset", "-c", "0"] + command : command
    process.standardInput = input
    process.standardOutput = output
    try process.run()
  }

  /// The next line of its output; nil at its end.
  package func readLine() -> String? {
    while true {
      if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
        let line = String(decoding: rest[..<end], as: UTF8.self)
        rest = Data(rest[rest.index(after: end)...])
        return line
      }
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { return nil }
      rest += more
    }
  }

  /// Decodes the next line of its output; throws if there is none or it is no such value.
  package func read<Value: Decodable>(_ type: Value.Type, of name: String) throws -> Value {
    guard let line = readLine() else { throw BenchError("\(name) ended early") }
    return try JSONDecoder().decode(type, from: Data(line.utf8))
  }

  /// The rest of its output.
  package func readToEnd() -> String {
    String(decoding: rest + output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  }

  package func write(_ text: String) throws {
    try input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
  }

  package func closeInput() { try? input.fileHandleForWriting.close() }

  /// Waits for its end, and returns its exit code.
  package func exitCode() -> Int32 {
    process.waitUntilExit()
    return process.terminationStatus
  }

  package func end() {
    closeInput()
    if process.isRunning { process.terminate() }
    process.waitUntilExit()
  }
}
