import Foundation

struct BenchError: Error, CustomStringConvertible {
  let description: String
}

/// A process with a pipe to its input and one from its output.
final class Child {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var rest = Data()

  init(_ command: [String], _ placement: Placement) throws {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = placement == .one ? ["taskset", "-c", "0"] + command : command
    process.standardInput = input
    process.standardOutput = output
    try process.run()
  }

  var number: Int32 { process.processIdentifier }

  /// The next line of its output; nil at its end.
  func readLine() -> String? {
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

  /// The next line of its output, which has to be there and to be such a value.
  func read<Value: Decodable>(_ type: Value.Type, of name: String) throws -> Value {
    guard let line = readLine() else { throw BenchError(description: "\(name) ended early") }
    return try JSONDecoder().decode(type, from: Data(line.utf8))
  }

  /// All that is left of its output.
  func readToEnd() -> String {
    String(decoding: rest + output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  }

  func write(_ text: String) throws {
    try input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
  }

  func closeInput() { try? input.fileHandleForWriting.close() }

  func end() {
    closeInput()
    if process.isRunning { process.terminate() }
    process.waitUntilExit()
  }
}
