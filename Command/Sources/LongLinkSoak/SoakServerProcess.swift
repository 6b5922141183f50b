// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport
import LongLinkTesting

/// One server of a soak, which is ended and started again on the same port.
actor SoakServerProcess {
  nonisolated let index: Int
  nonisolated let ledger: String
  private(set) var port: UInt16 = 0
  /// The process that runs; nil until it listens, so that no fault meets one that does not.
  private var child: ChildProcess?
  private var starting: ChildProcess?
  private var isEnded = false

  init(index: Int, ledger: String) {
    self.index = index
    self.ledger = ledger
  }

  /// Starts it for the first time, on a port that is free.
  ///
  /// The port is below those that connects take: while the server is down, a client could else be
  /// given the port it connects to, be connected to itself, and keep the server from its port.
  func open() async throws {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<20 {
      port = .random(in: 20_000..<32_000, using: &generator)
      do {
        return try await start()
      } catch is ChildFailure {
        continue  // Somebody else has the port.
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

  /// Kills it, or tells it to drain; returns false where there is nothing to end.
  func end(with signal: Int32) async throws -> Bool {
    guard let child else { return false }
    self.child = nil
    child.send(signal)
    let code = await child.exitCode()
    if signal == SIGTERM, code != 0 {
      throw ChildFailure(
        "server \(index), told to end, ended with \(code.map { "code \($0)" } ?? "a signal")")
    }
    return true
  }

  func send(_ signal: Int32) -> Bool {
    child?.send(signal)
    return child != nil
  }

  /// Kills it for good.
  func abandon() {
    isEnded = true
    starting?.send(SIGKILL)
    child?.send(SIGKILL)
  }

  var process: Int32? { child?.number }

  /// Throws where it has ended by itself.
  func check() throws {
    if let child, !child.isRunning { throw ChildFailure("server \(index) ended by itself") }
  }
}
