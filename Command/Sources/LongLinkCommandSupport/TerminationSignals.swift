// SPDX-License-Identifier: Apache-2.0

package import ArgumentParser
import Foundation
import Synchronization

/// The descriptor that the signal handler writes to; the handler touches nothing else.
private let signalledDescriptor = Atomic<Int32>(-1)

/// Turns the first SIGINT or SIGTERM into a value; a second one ends the process at once. For
/// commands that are clients: servers have `run(until:)`.
package struct TerminationSignals {
  private let stream: AsyncStream<Int32>

  /// Installs the signal handlers. Do this once in a process.
  package init() {
    let pipe = Pipe()
    let (stream, continuation) = AsyncStream.makeStream(of: Int32.self)
    self.stream = stream
    signalledDescriptor.store(pipe.fileHandleForWriting.fileDescriptor, ordering: .releasing)
    Thread.detachNewThread {
      if let byte = try? pipe.fileHandleForReading.read(upToCount: 1)?.first {
        continuation.yield(Int32(byte))
      }
      continuation.finish()
      // The handler may still be about to write.
      withExtendedLifetime(pipe.fileHandleForWriting) {}
    }
    for number in [SIGINT, SIGTERM] {
      signal(number) { number in
        signal(SIGINT, SIG_DFL)
        signal(SIGTERM, SIG_DFL)
        var byte = UInt8(truncatingIfNeeded: number)
        _ = unsafe write(signalledDescriptor.load(ordering: .acquiring), &byte, 1)
      }
    }
  }

  /// Waits for the first signal; nil when the waiting task is cancelled.
  @discardableResult
  package func first() async -> Int32? {
    await stream.first { _ in true }
  }

  /// Calls `action` at each SIGHUP, one call after another, until the task is cancelled. Do this
  /// once in a process.
  package static func onHangUp(
    _ action: @escaping @Sendable () async -> Void
  ) -> Task<Void, Never> {
    signal(SIGHUP, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: SIGHUP)
    // Several signals while the action runs are as good as one.
    let (stream, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    source.setEventHandler { continuation.yield() }
    source.resume()
    return Task {
      for await _ in stream { await action() }
      source.cancel()
    }
  }

  /// Does work that the first signal cancels. Returns its result, and the signal, if any.
  package func cancelling<Value: Sendable>(
    _ work: @escaping @Sendable () async -> Value
  ) async -> (value: Value, signal: Int32?) {
    let waiting = Task { await work() }
    return await withTaskGroup(of: Int32?.self) { group in
      group.addTask { await first() }
      group.addTask {
        _ = await waiting.value
        return nil
      }
      let signal = await group.next() ?? nil
      if signal != nil { waiting.cancel() }
      group.cancelAll()
      return (await waiting.value, signal)
    }
  }
}

extension ExitCode {
  /// The exit code that shells report for a process that a signal has ended.
  package static func signal(_ number: Int32) -> ExitCode { ExitCode(128 + number) }
}
