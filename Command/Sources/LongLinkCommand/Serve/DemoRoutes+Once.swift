// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport
import LongLinkDemoMessages
import LongLinkServer
import Synchronization

/// The route that shows how often a request has run.
extension DemoRoutes {
  static let once = RPCMethod<OnceRequest, LongLinkDemoMessages.OnceReply>(10)

  static func installOnce(on server: LongLinkServer, noting effects: EffectFile?) {
    let runs = Runs()
    server.route(once) { message, request in
      let number = try runs.count(message.key)
      try effects?.append(message.key)
      let delay = Duration.milliseconds(Int64(min(message.delayMilliseconds, 60_000)))
      try await request.clock.sleep(for: delay)
      return LongLinkDemoMessages.OnceReply(runs: number)
    }
  }
}

/// How often the requests of each key have run in this process.
private final class Runs: Sendable {
  private static let longestKey = 255
  private static let mostKeys = 100_000
  private let counts = Mutex<[[UInt8]: UInt64]>([:])

  /// Counts a run, and returns how many there are with it.
  func count(_ key: [UInt8]) throws -> UInt64 {
    guard key.count <= Runs.longestKey else {
      throw Rejection(.malformed, "key is over \(Runs.longestKey) bytes")
    }
    return try counts.withLock { counts in
      guard let number = counts[key] ?? (counts.count < Runs.mostKeys ? 0 : nil) else {
        throw Rejection(.overloaded, "\(Runs.mostKeys) keys are counted already")
      }
      counts[key] = number + 1
      return number + 1
    }
  }
}

/// A file with the key of each run, as a line: what the requests have done, also in processes that
/// were killed.
final class EffectFile: Sendable {
  private let path: String
  private let handle: FileHandle

  init(_ path: String) throws {
    self.path = path
    handle = try FileProblem.naming(path) {
      // The path lives for as long as the call.
      let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
      return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }
  }

  /// Appends a key in one call of the system, so that it is in the file as a whole or not at all.
  func append(_ key: [UInt8]) throws {
    try FileProblem.naming(path) { try handle.write(contentsOf: Data(key + [UInt8(ascii: "\n")])) }
  }
}
