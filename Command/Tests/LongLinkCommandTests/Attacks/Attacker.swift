// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import Synchronization
import Testing

/// One connection of an attacker: it sends what it likes, and ends with whoever holds it.
final class Attacker: Sendable {
  /// What the server has said, as far as that matters.
  private final class Heard: Sendable {
    let pong = DispatchSemaphore(value: 0)
    let hasEnded = Atomic(false)
  }

  private let descriptor: Int32
  private let heard = Heard()
  private let count = Atomic(0)
  private let isCutOff = Atomic(false)

  /// The bytes that the system has taken so far.
  var sent: Int { count.load(ordering: .relaxed) }

  /// Connects, says a hello that agrees to metadata and fragments, and waits for the welcome.
  init(port: String, hello: [UInt8] = [0x08, 1, 0x10, 3], from host: UInt8 = 1) throws {
    let connection = try RawClient(port: port, from: host).connection
    descriptor = connection.descriptor
    // A server that reads no more holds an attack up for so long.
    var limit = timeval(tv_sec: 5, tv_usec: 0)
    let size = socklen_t(MemoryLayout<timeval>.size)
    // The system reads the value during the call.
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
    send(Attacker.frame(.hello, serial: 3, hello))
    try #require(connection.read() == FrameKind.welcome.rawValue)
  }

  deinit {
    shutdown(descriptor, Int32(SHUT_RDWR))
    close(descriptor)
  }

  /// Sends all of the bytes; false where the server takes no more, or has closed.
  @discardableResult
  func send(_ bytes: [UInt8]) -> Bool {
    var sent = 0
    while sent < bytes.count {
      // The rest of the array lives for as long as the call.
      let count = unsafe bytes.withUnsafeBytes { buffer in
        unsafe Foundation.send(
          descriptor, buffer.baseAddress! + sent, buffer.count - sent, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else {
        isCutOff.store(true, ordering: .relaxed)
        return false
      }
      sent += count
      self.count.add(count, ordering: .relaxed)
    }
    return true
  }

  /// Reads and forgets whatever comes, on a thread of its own, until the connection has ended.
  func drain() {
    let connection = ScriptedConnection(descriptor: dup(descriptor))
    Thread.detachNewThread { [heard] in
      while let kind = connection.read() {
        if kind == FrameKind.pong.rawValue { heard.pong.signal() }
      }
      close(connection.descriptor)
      heard.hasEnded.store(true, ordering: .releasing)
      heard.pong.signal()
    }
  }

  /// Whether the server has taken in all that was to be sent: it answers a ping behind that. Only
  /// for an attacker that drains.
  func hasBeenHeard() async -> Bool {
    guard send(Attacker.frame(.ping, serial: 0)), !isCutOff.load(ordering: .relaxed) else {
      return false
    }
    return await onThread { [heard] in
      heard.pong.wait()
      return !heard.hasEnded.load(ordering: .acquiring)
    }
  }

  static func frame(
    _ kind: FrameKind, flags: FrameFlags = [], tag: UInt32 = 0, serial: UInt32, _ body: [UInt8] = []
  ) -> [UInt8] {
    ScriptedConnection.frame(
      kind: UInt32(kind.rawValue) | UInt32(flags.rawValue) << 6, tag: tag, serial: serial,
      body: body)
  }

  /// A request to sleep for ten minutes, padded to a size by an unknown field.
  static func sleep(_ serial: UInt32, padding: Int = 0) -> [UInt8] {
    var body: [UInt8] = [0x08, 0xC0, 0xCF, 0x24]
    if padding > 0 {
      body += [0x7A] + varint(padding) + [UInt8](repeating: 7, count: padding)
    }
    return frame(.request, tag: 2, serial: serial, body)
  }

  static func varint(_ value: Int) -> [UInt8] {
    var (rest, bytes) = (value, [UInt8]())
    while rest >= 0x80 {
      bytes.append(UInt8(rest & 0x7F | 0x80))
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }
}

/// A client that asks for a sleep of a millisecond over and over, beside an attack.
final class HonestClient: Sendable {
  /// What became of its requests.
  struct Outcome {
    var answered = 0
    var failed = 0
    /// In seconds.
    var slowest = 0.0
    fileprivate var isStopped = false
    fileprivate var hasEnded: CheckedContinuation<Void, Never>?
  }

  private let connection: ScriptedConnection
  private let outcome = Mutex(Outcome())

  init(port: String) throws {
    connection = try RawClient(port: port).connection
    Thread.detachNewThread { [self] in run() }
  }

  private func run() {
    var serial: UInt32 = 50
    var isOpen = true
    while isOpen, !outcome.withLock({ $0.isStopped }) {
      let began = DispatchTime.now().uptimeNanoseconds
      connection.write(Attacker.frame(.request, tag: 2, serial: serial, [0x08, 1]))
      let code = connection.readResponseCode()
      let seconds = Double(DispatchTime.now().uptimeNanoseconds - began) / 1e9
      outcome.withLock { outcome in
        outcome.slowest = max(outcome.slowest, seconds)
        if code == 200 { outcome.answered += 1 } else { outcome.failed += 1 }
      }
      serial += 1
      isOpen = code != nil
    }
    close(connection.descriptor)
    let waiter = outcome.withLock { outcome in
      outcome.isStopped = true
      defer { outcome.hasEnded = nil }
      return outcome.hasEnded
    }
    waiter?.resume()
  }

  /// Ends it, and returns when its last request has.
  func finish() async -> Outcome {
    await withCheckedContinuation { continuation in
      let isOver = outcome.withLock { outcome in
        defer { outcome.isStopped = true }
        if !outcome.isStopped { outcome.hasEnded = continuation }
        return outcome.isStopped
      }
      if isOver { continuation.resume() }
    }
    return outcome.withLock { $0 }
  }
}

extension ScriptedConnection {
  /// Reads frames up to a response, and returns its code and refused mark; nil at the end.
  func readResponseCode() -> UInt32? {
    while let frame = readFrame() {
      if frame.kind == FrameKind.response.rawValue { return frame.tag }
    }
    return nil
  }
}
