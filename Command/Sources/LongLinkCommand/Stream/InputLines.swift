// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import LongLinkCommandSupport
import LongLinkDriver

/// The lines of standard input, without their newlines, read when they are asked for.
///
/// Not more than one chunk and one line is in memory. A last line needs no newline.
struct InputLines {
  /// The longest line: the default body limit.
  private static let longest = 16_777_216
  private static let chunkSize = 65_536

  /// The bytes of a line that has not ended yet.
  private var begun: [UInt8] = []
  private var hasEnded = false

  /// Waits for the next lines that end in one chunk; nil at the end of the input.
  mutating func next() async throws -> [[UInt8]]? {
    var lines: [[UInt8]] = []
    while lines.isEmpty, !hasEnded {
      let chunk = try await InputLines.chunk()
      hasEnded = chunk.isEmpty
      var rest = chunk[...]
      while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
        lines.append(begun + rest[..<end])
        begun = []
        rest = rest[(end + 1)...]
      }
      begun += rest
      guard begun.count <= InputLines.longest else {
        Output.error("a line of standard input is longer than \(InputLines.longest) bytes")
        throw ExitCode(ExitStatus.rejected)
      }
    }
    if hasEnded, !begun.isEmpty {
      lines.append(begun)
      begun = []
    }
    return lines.isEmpty ? nil : lines
  }

  /// What standard input has; empty at its end. Stops waiting when the task is cancelled.
  private static func chunk() async throws -> [UInt8] {
    let gate = Gate<Result<[UInt8], any Error>>()
    // A read that is waiting cannot be stopped, so it gets a thread that ends with the process.
    Thread.detachNewThread { gate.open(Result { try readChunk() }) }
    return try await withTaskCancellationHandler {
      try await gate.value.get()
    } onCancel: {
      gate.open(.failure(CancellationError()))
    }
  }

  private static func readChunk() throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: chunkSize)
    while true {
      // The system writes at most `chunkSize` bytes into the array.
      let count = unsafe bytes.withUnsafeMutableBytes { buffer in
        unsafe read(STDIN_FILENO, buffer.baseAddress, buffer.count)
      }
      if count >= 0 { return Array(bytes.prefix(count)) }
      guard errno == EINTR else {
        let reason = unsafe String(cString: strerror(errno))
        Output.error("cannot read standard input: \(reason)")
        throw ExitCode(ExitStatus.failure)
      }
    }
  }
}
