import Foundation

/// A `longlink serve` in a process of its own, which ends with this one.
final class ServerProcess: Sendable {
  private let process = Process()
  /// The child ends when nobody holds this side of its standard input any more.
  private let input = Pipe()
  private let lines: AsyncStream<String>

  /// Starts this very program as a server; port 0 takes a free one.
  init(port: UInt16, heartbeat: Duration, heartbeatTimeout: Duration) throws {
    process.executableURL = try ServerProcess.ownProgram()
    process.arguments = [
      "serve", "--port", "\(port)", "--heartbeat", "\(heartbeat / .seconds(1))",
      "--heartbeat-timeout", "\(heartbeatTimeout / .seconds(1))", "--for-demo",
    ]
    let output = Pipe()
    process.standardInput = input
    process.standardOutput = output
    let (lines, continuation) = AsyncStream.makeStream(of: String.self)
    self.lines = lines
    try process.run()
    let reader = output.fileHandleForReading
    Thread.detachNewThread { ServerProcess.read(reader, into: continuation) }
  }

  private static func ownProgram() throws -> URL {
    guard let program = Bundle.main.executableURL else {
      throw DemoFailure("the path of this program is not known")
    }
    return program
  }

  private static func read(_ handle: FileHandle, into lines: AsyncStream<String>.Continuation) {
    var line: [UInt8] = []
    while let data = try? handle.read(upToCount: 1), let byte = data.first {
      if byte == UInt8(ascii: "\n") {
        lines.yield(String(decoding: line, as: UTF8.self))
        line = []
      } else {
        line.append(byte)
      }
    }
    lines.finish()
  }

  /// The process's number.
  var number: Int32 { process.processIdentifier }

  /// Waits until it listens, and returns the port.
  func port() async throws -> UInt16 {
    guard let line = await lines.first(where: { _ in true }) else {
      throw DemoFailure("the server ended before it listened")
    }
    let prefix = "listening on 127.0.0.1:"
    guard line.hasPrefix(prefix), let port = UInt16(line.dropFirst(prefix.count)) else {
      throw DemoFailure("the server's first line was '\(line)'")
    }
    return port
  }

  func send(_ signal: Int32) {
    // A process that has ended has no number any more, or somebody else has it.
    if process.isRunning { kill(number, signal) }
  }

  /// Waits for its end; nil where a signal ended it.
  func exitCode() async -> Int32? {
    let process = process
    return await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        process.waitUntilExit()
        continuation.resume(
          returning: process.terminationReason == .exit ? process.terminationStatus : nil)
      }
    }
  }
}
