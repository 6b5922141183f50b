// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A child process did not do what its parent expected.
package struct ChildFailure: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) {
    self.description = description
  }
}

/// A child process that runs this same program, and ends with this process.
package final class ChildProcess: Sendable {
  private let process = Process()
  /// The child ends when this end of its standard input is closed.
  private let input = Pipe()
  /// The lines of its standard output; only one task may read them.
  package let lines: AsyncStream<String>

  package init(_ arguments: [String]) throws {
    guard let program = Bundle.main.executableURL else {
      throw ChildFailure("the path of this program is unknown")
    }
    process.executableURL = program
    process.arguments = arguments
    let output = Pipe()
    process.standardInput = input
    process.standardOutput = output
    let (lines, continuation) = AsyncStream.makeStream(of: String.self)
    self.lines = lines
    try process.run()
    let reader = output.fileHandleForReading
    Thread.detachNewThread { ChildProcess.read(reader, into: continuation) }
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

  /// The process ID.
  package var number: Int32 { process.processIdentifier }

  package var isRunning: Bool { process.isRunning }

  /// Waits until a server listens, and returns its port.
  package func listeningPort() async throws -> UInt16 {
    guard let line = await lines.first(where: { _ in true }) else {
      throw ChildFailure("the server ended before it listened")
    }
    let prefix = "listening on 127.0.0.1:"
    guard line.hasPrefix(prefix), let port = UInt16(line.dropFirst(prefix.count)) else {
      throw ChildFailure("the server's first line was '\(line)'")
    }
    return port
  }

  package func send(_ signal: Int32) {
    // After the process has ended, another one may have its ID.
    if process.isRunning { kill(number, signal) }
  }

  /// Writes a line to its standard input.
  package func write(line: String) throws {
    try input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))
  }

  /// Waits for its exit code; nil if a signal ended it.
  package func exitCode() async -> Int32? {
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
