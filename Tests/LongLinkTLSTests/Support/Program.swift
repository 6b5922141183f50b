// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCertificates
import LongLinkTestSupport
import Synchronization

/// Another program that speaks TLS.
final class Program: Sendable {
  private let process: Mutex<Process>
  private let input = Pipe()
  private let output: AsyncStream<[UInt8]>
  private let received = Mutex<[UInt8]>([])

  /// Why a program cannot run here; nil if it can.
  static func problem(_ name: String) -> String? {
    do {
      let process = Process()
      process.executableURL = URL(filePath: "/usr/bin/env")
      let question = ["openssl": "version", "nginx": "-v"][name] ?? "--version"
      process.arguments = [name, question]
      process.standardOutput = FileHandle.nullDevice
      process.standardError = FileHandle.nullDevice
      try process.run()
      process.waitUntilExit()
      return process.terminationStatus == 0 ? nil : "\(name) does not run"
    } catch {
      return "\(name): \(error)"
    }
  }

  /// The path of a script beside these tests.
  static let script = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Peers/peer.py").path

  init(_ arguments: String...) throws {
    // A program that has ended is an error of the write, not a signal.
    signal(SIGPIPE, SIG_IGN)
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = arguments
    process.standardInput = input
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
    self.output = stream
    try process.run()
    self.process = Mutex(process)
    let descriptor = output.fileHandleForReading
    Thread.detachNewThread {
      // Not `read(upToCount:)`, which waits for all of that.
      while true {
        let data = descriptor.availableData
        if data.isEmpty { break }
        continuation.yield(Array(data))
      }
      continuation.finish()
    }
  }

  deinit {
    // It may have inherited that other signals are blocked.
    process.withLock { process in
      if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }
  }

  func write(_ bytes: [UInt8]) throws {
    try input.fileHandleForWriting.write(contentsOf: Data(bytes))
  }

  func closeInput() throws {
    try input.fileHandleForWriting.close()
  }

  /// Reads until what has come fulfils a condition, or the program has ended. Returns all of it.
  @discardableResult
  func read(until isEnough: ([UInt8]) -> Bool) async -> [UInt8] {
    var all = received.withLock { $0 }
    if isEnough(all) { return all }
    for await piece in output {
      all += piece
      received.withLock { [all] in $0 = all }
      if isEnough(all) { break }
    }
    return all
  }

  /// Reads until there is a whole line with this text, or the program has ended.
  func line(with text: String) async -> String? {
    func find(_ bytes: [UInt8]) -> String? {
      String(decoding: bytes, as: UTF8.self).split(
        separator: "\n", omittingEmptySubsequences: false
      )
      .dropLast().first { $0.contains(text) }.map(String.init)
    }
    return find(await read { find($0) != nil })
  }
}

/// A folder of files that is removed in the end.
final class Folder: Sendable {
  let path: String

  init() throws {
    let name = "longlink-tls-\(UUID().uuidString)"
    let url = FileManager.default.temporaryDirectory.appending(path: name)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    path = url.path
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }

  /// Writes a file in one step, and returns its path.
  @discardableResult
  func write(_ name: String, _ bytes: [UInt8]) throws -> String {
    let file = "\(path)/\(name)"
    try Data(bytes).write(to: URL(filePath: file), options: .atomic)
    return file
  }

  /// The text of a file.
  func read(_ name: String) throws -> String {
    try String(contentsOfFile: "\(path)/\(name)", encoding: .utf8)
  }

  /// Writes a certificate and its key.
  @discardableResult
  func write(_ name: String, _ pair: CertificatePair) throws -> (chain: String, key: String) {
    (try write("\(name).pem", pair.certificate), try write("\(name)-key.pem", pair.key))
  }
}
