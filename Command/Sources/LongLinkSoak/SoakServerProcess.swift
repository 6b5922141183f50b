// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport
import LongLinkTesting

/// One server of a soak, which can be ended and started again on the same port.
actor SoakServerProcess {
  nonisolated let index: Int
  nonisolated let ledger: String
  private(set) var port: UInt16 = 0
  /// The running process; nil until it listens, so that faults hit only servers that listen.
  private var child: ChildProcess?
  private var starting: ChildProcess?
  private var isEnded = false

  init(index: Int, ledger: String) {
    self.index = index
    self.ledger = ledger
  }

  /// Starts it for the first time, on a free port.
  ///
  /// The port is below the ephemeral ports. Otherwise, while the server is down, a client could get
  /// the port that it connects to, connect to itself, and keep the server from its port.
  func open() async throws {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<20 {
      port = .random(in: 20_000..<32_000, using: &generator)
      do {
        return try await start()
      } catch is ChildFailure {
        continue  // The port is in use.
      }
    }
    throw ChildFailure("server \(index) found no free port")
  }

  func start() async throws {
    guard !isEnded, child == nil, starting == nil else { return }
    let process = try ChildProcess(["server", "--port", "\(port)", "--ledger", ledger])
    starting = process
    defer { starting = nil }
    _ = try await process.listeningPort()
    child = process
  }

  /// Kills it, or makes it drain; returns false if it does not run.
  func end(with signal: Int32) async throws -> Bool {
    guard let child else { return false }
    self.child = nil
    child.send(signal)
    let code = await child.exitCode()
    if signal == SIGTERM, code != 0 {
      throw ChildFailure(
        "server \(index) ended with \(code.map { "code \($0)" } ?? "a signal") after SIGTERM")
    }
    return true
  }

  func send(_ signal: Int32) -> Bool {
    child?.send(signal)
    return child != nil
  }

  /// Kills it permanently.
  func abandon() {
    isEnded = true
    starting?.send(SIGKILL)
    child?.send(SIGKILL)
  }

  var process: Int32? { child?.number }

  /// Throws if it has ended unexpectedly.
  func check() throws {
    if let child, !child.isRunning { throw ChildFailure("server \(index) ended unexpectedly") }
  }
}
