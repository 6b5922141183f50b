// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// Forwards TCP connections to a server, and counts the bytes that clients send, all of them: also
/// those that the server never gets.
final class CountingRelay: Sendable {
  private struct State {
    /// The port of the server; nil while connections are closed at once.
    var target: UInt16?
    var connections: Set<Int32> = []
    var sent = 0
    /// What is done once so many bytes have been sent.
    var action: (at: Int, body: @Sendable () -> Void)?
  }

  /// Where clients connect to, as text, since it goes into arguments.
  let port: String
  private let listener: Int32
  private let state = Mutex(State())

  init() throws {
    (listener, port) = try RawClient.listen()
    Thread.detachNewThread { [listener, weak self] in
      while true {
        let near = accept(listener, nil, nil)
        guard near >= 0 else { return }
        guard let self else {
          close(near)
          return
        }
        accepted(near)
      }
    }
  }

  deinit {
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
  }

  /// The bytes that all clients have sent.
  var sent: Int { state.withLock { $0.sent } }

  /// Forwards to a server from now on.
  func open(to port: String) { state.withLock { $0.target = UInt16(port) } }

  /// Ends all connections, and those that come before `open`.
  func cut() {
    state.withLock { state in
      state.target = nil
      for descriptor in state.connections { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }
  }

  /// Does something once so many bytes more have been sent, before the last of them is forwarded.
  /// What was to be done before is not.
  func after(_ count: Int, _ body: @escaping @Sendable () -> Void) {
    state.withLock { $0.action = ($0.sent + count, body) }
  }

  /// Does not do what was to be done.
  func giveUp() { state.withLock { $0.action = nil } }

  private func accepted(_ near: Int32) {
    guard let target = state.withLock({ $0.target }),
      let far = try? RawClient(port: "\(target)").connection.descriptor
    else {
      close(near)
      return
    }
    let isOpen = state.withLock { state in
      guard state.target != nil else { return false }
      state.connections.formUnion([near, far])
      return true
    }
    let pair = Pair(near: near, far: far) { [self] in
      state.withLock { $0.connections.subtract([near, far]) }
    }
    if !isOpen { shutdown(near, Int32(SHUT_RDWR)) }
    Thread.detachNewThread { [self] in
      pair.copy(from: near, to: far) { count in noteSent(count) }
    }
    Thread.detachNewThread { pair.copy(from: far, to: near) { _ in } }
  }

  private func noteSent(_ count: Int) {
    let action = state.withLock { state -> (@Sendable () -> Void)? in
      state.sent += count
      guard let action = state.action, state.sent >= action.at else { return nil }
      state.action = nil
      return action.body
    }
    action?()
  }
}

/// One connection through a relay. The one of its two threads that ends last closes it.
private final class Pair: Sendable {
  private let near: Int32
  private let far: Int32
  private let hasEnded = Atomic(false)
  private let onEnd: @Sendable () -> Void

  init(near: Int32, far: Int32, onEnd: @escaping @Sendable () -> Void) {
    self.near = near
    self.far = far
    self.onEnd = onEnd
  }

  func copy(from source: Int32, to target: Int32, _ note: (Int) -> Void) {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    var goesOn = true
    while goesOn {
      // The array lives for as long as each of the calls.
      goesOn = unsafe buffer.withUnsafeMutableBytes { bytes in
        let count = unsafe recv(source, bytes.baseAddress, bytes.count, 0)
        guard count > 0 else { return false }
        note(count)
        var sent = 0
        while sent < count {
          let result = unsafe send(
            target, bytes.baseAddress! + sent, count - sent, Int32(MSG_NOSIGNAL))
          guard result > 0 else { return false }
          sent += result
        }
        return true
      }
    }
    shutdown(near, Int32(SHUT_RDWR))
    shutdown(far, Int32(SHUT_RDWR))
    guard hasEnded.exchange(true, ordering: .acquiringAndReleasing) else { return }
    onEnd()
    close(near)
    close(far)
  }
}
