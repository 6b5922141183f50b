// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkSystem
internal import LongLinkCLibrary
internal import Synchronization

/// Waits for signals of the process. It may be used from any thread.
///
/// A signal is caught once: it ends all waits for it, and then has its former effect again, as have
/// the other signals that no wait is left for. So a second signal ends a process that is slow to
/// end after the first one. A signal that the process ignores stays ignored. A pipe and a thread
/// that reads it, made with the first wait, stay.
package final class ProcessSignals: Sendable {
  private struct Wait {
    let numbers: Set<CInt>
    let call: @Sendable (CInt) -> Void
  }

  private struct State {
    var isOpen = false
    var lastID: UInt64 = 0
    var waits: [UInt64: Wait] = [:]
    /// The signals that are caught.
    var caught: Set<CInt> = []

    /// Catches the signals that are waited for, and no others.
    mutating func settle() throws(Errno) {
      let wanted = waits.values.reduce(into: Set<CInt>()) { $0.formUnion($1.numbers) }
      for number in caught.subtracting(wanted) { cll_signal_restore(number) }
      caught.formIntersection(wanted)
      for number in wanted.subtracting(caught) {
        let failure = cll_signal_catch(number)
        guard failure == 0 else { throw Errno(failure) }
        caught.insert(number)
      }
    }
  }

  package static let interrupt = SIGINT
  package static let terminate = SIGTERM
  package static let quit = SIGQUIT
  package static let hangUp = SIGHUP

  /// The only instance, because signals belong to the process.
  package static let shared = ProcessSignals()

  private let state = Mutex(State())

  /// Calls a function with the first of the given signals that arrives, once, on a thread of its
  /// own. Returns the number of the wait, for `cancel`.
  package func wait(
    for numbers: Set<CInt>, _ call: @escaping @Sendable (CInt) -> Void
  ) throws(SocketError) -> UInt64 {
    let result = state.withLock { state in
      Result { () throws(Errno) in
        if !state.isOpen { try open() }
        state.isOpen = true
        state.lastID += 1
        state.waits[state.lastID] = Wait(numbers: numbers, call: call)
        do throws(Errno) {
          try state.settle()
        } catch {
          state.waits[state.lastID] = nil
          try? state.settle()
          throw error
        }
        return state.lastID
      }
    }
    return try result.mapError { SocketError(operation: "catch signals", errno: $0.code) }.get()
  }

  /// Ends a wait, unless a signal has ended it.
  package func cancel(_ wait: UInt64) {
    state.withLock { state in
      guard state.waits.removeValue(forKey: wait) != nil else { return }
      // Other waits go on. This cannot fail: no more signals are caught than before.
      try? state.settle()
    }
  }

  /// A signal was caught, and has its former effect again. It ends what waits for it now, even if
  /// that has begun since it came: the process was asked to end. If all waits were cancelled
  /// meanwhile, it has its former effect: a process must not lose it.
  private func received(_ number: CInt) {
    let ended = state.withLock { state in
      // Another wait may have caught the signal again since.
      cll_signal_restore(number)
      state.caught.remove(number)
      let ended = state.waits.filter { $0.value.numbers.contains(number) }.sorted {
        $0.key < $1.key
      }
      for (id, _) in ended { state.waits[id] = nil }
      try? state.settle()
      return ended
    }
    for (_, wait) in ended { wait.call(number) }
    // Not `raise`: this thread takes no signals.
    if ended.isEmpty { kill(getpid(), number) }
  }

  /// Makes the pipe, and the thread that reads it.
  private func open() throws(Errno) {
    let descriptor = cll_signals_open()
    guard descriptor >= 0 else { throw Errno(errno) }
    let failure = systemThread(named: "longlink-signals") {
      while true {
        let number = cll_signal_next(descriptor)
        guard number > 0 else { return }
        self.received(number)
      }
    }
    guard failure == 0 else {
      SystemCall.close(descriptor)
      throw Errno(failure)
    }
  }
}

extension EventLoop {
  /// Whether the loop runs over the kernel, not in a simulation.
  package var isOfSystem: Bool { driver is KernelDriver }
}
