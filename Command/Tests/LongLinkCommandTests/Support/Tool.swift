// SPDX-License-Identifier: Apache-2.0

import Foundation

/// What a process that has ended left behind.
struct Finished {
  let output: [UInt8]
  let errors: String
  /// Nil where a signal ended it.
  let code: Int32?

  var text: String { String(decoding: output, as: UTF8.self) }
  var lines: [String] { text.split(separator: "\n").map(String.init) }
}

/// A `longlink` that runs as a process of its own, and is killed with whoever holds it.
///
/// It is killed too if a task that waits for it is cancelled, as by the time limit of a test: then
/// its output ends, and the test fails.
final class Tool: Sendable {
  private let process: SpawnedProcess

  /// The command beside the tests, or the one that the environment names.
  static var program: URL {
    if let path = ProcessInfo.processInfo.environment["LONGLINK_BINARY"] {
      return URL(fileURLWithPath: path)
    }
    return beside("longlink")
  }

  /// The soak beside the tests.
  static var soak: URL { beside("longlink-soak") }

  private static func beside(_ name: String) -> URL {
    let tests = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? Bundle.main.bundlePath
    let folder = URL(fileURLWithPath: tests).deletingLastPathComponent()
    let beside = folder.appendingPathComponent(name)
    if FileManager.default.isExecutableFile(atPath: beside.path) { return beside }
    return Bundle.main.executableURL!.deletingLastPathComponent().appendingPathComponent(name)
  }

  /// Starts it with a standard input that holds these bytes and ends, unless it is held open.
  ///
  /// `launcher` is a program with arguments, which becomes the one that it is told to run.
  /// `program` is run in place of `longlink`.
  init(
    _ arguments: [String], input: [UInt8] = [], holdsInput: Bool = false,
    environment: [String: String] = [:], launcher: [String] = [], program: URL = Tool.program
  ) throws {
    process = try SpawnedProcess(launcher + [program.path] + arguments, environment: environment)
    try write(input)
    if !holdsInput { try process.input.close() }
  }

  /// Writes to its standard input, which was held open.
  func write(_ bytes: [UInt8]) throws {
    try process.input.write(contentsOf: Data(bytes))
  }

  deinit {
    send(SIGKILL)
  }

  var isRunning: Bool { process.isRunning }

  /// The process's number.
  var id: Int32 { process.id }

  func send(_ signal: Int32) { process.send(signal) }

  /// The next line of its standard output; nil at its end.
  func nextLine() async -> String? {
    let handle = process.output
    return await killedOnCancel { await onThread { Tool.readLine(handle) } }
  }

  private func killedOnCancel<Value: Sendable>(_ wait: () async -> Value) async -> Value {
    await withTaskCancellationHandler(operation: wait) { send(SIGKILL) }
  }

  /// Sends a signal at the first line that contains a word, and returns that line.
  ///
  /// All of it happens on one thread: other tests, which may keep the pool busy, do not delay it.
  func send(_ signal: Int32, atLineWith word: String) async -> String? {
    let process = process
    return await killedOnCancel {
      await onThread {
        while let line = Tool.readLine(process.output) {
          guard line.contains(word) else { continue }
          process.send(signal)
          return line
        }
        return nil
      }
    }
  }

  private static func readLine(_ handle: FileHandle) -> String? {
    var line: [UInt8] = []
    while let byte = try? handle.read(upToCount: 1)?.first {
      if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
      line.append(byte)
    }
    return nil
  }

  /// The next line of its standard error; nil at its end.
  func nextErrorLine() async -> String? {
    let handle = process.errors
    return await killedOnCancel { await onThread { Tool.readLine(handle) } }
  }

  /// Waits for its end, and returns what has not been read yet.
  func finish() async -> Finished {
    let process = process
    return await killedOnCancel {
      async let output = onThread { (try? process.output.readToEnd()) ?? Data() }
      async let errors = onThread { (try? process.errors.readToEnd()) ?? Data() }
      async let code = onThread { process.waitUntilExit() }
      return await Finished(
        output: [UInt8](output), errors: String(decoding: errors, as: UTF8.self), code: code)
    }
  }

  /// Runs it to its end.
  static func run(
    _ arguments: String..., input: [UInt8] = [], environment: [String: String] = [:]
  ) async throws -> Finished {
    try await Tool(arguments, input: input, environment: environment).finish()
  }
}

/// Waits for work that blocks its thread.
func onThread<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread { continuation.resume(returning: work()) }
  }
}
