// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkSystem
internal import LongLinkCLibrary
public import LongLinkCore
internal import Synchronization

/// A job that another thread gave to a loop of a running simulation. Some task has left the
/// simulation and come back, at a time that does not depend on the seed.
public struct SimulationEscape: Hashable, Sendable {
  /// The name of the loop that got the job.
  public let loop: String
  /// The name of the task that gave the job; without a name, a description of the job; nil if
  /// neither is known.
  public let task: String?
  /// The name of the thread that gave the job.
  public let thread: String
  /// The virtual time at which the job arrived.
  public let time: LinkInstant
}

extension SimulationEscape: CustomStringConvertible {
  /// The task, the loop, the thread and the time, on one line.
  public var description: String {
    let subject = task.map { "task \"\($0)\"" } ?? "something"
    return "\(subject) came to loop \"\(loop)\" from thread \"\(thread)\" at \(time)"
  }
}

/// Records work that comes to a running simulation from outside.
final class EscapeWatch: Sendable {
  private static let most = 100
  /// The thread that runs the simulation; 0 while none does.
  private let thread = Atomic<UInt>(0)
  private let found = Mutex<[SimulationEscape]>([])

  var escapes: [SimulationEscape] { found.withLock { $0 } }

  func begin() {
    thread.store(Self.currentThread, ordering: .releasing)
  }

  func end() {
    thread.store(0, ordering: .releasing)
  }

  /// Records that work came to a loop, if it came from another thread than the simulation's.
  func handedOver(_ job: UnownedJob?, to loop: String, at time: LinkInstant) {
    let thread = thread.load(ordering: .acquiring)
    guard thread != 0, thread != Self.currentThread else { return }
    let task = Self.currentTaskName ?? job.map { "\($0)" }
    let escape = SimulationEscape(
      loop: loop,
      task: task,
      thread: Self.currentThreadName,
      time: time
    )
    found.withLock { found in
      if found.count < Self.most { found.append(escape) }
    }
  }

  private static var currentTaskName: String? {
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) { return Task.name }
    return nil
  }

  private static var currentThread: UInt {
    #if canImport(Darwin)
    unsafe UInt(bitPattern: pthread_self())
    #else
    UInt(pthread_self())
    #endif
  }

  private static var currentThreadName: String {
    unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
      unsafe cll_thread_name(buffer.baseAddress!, buffer.count)
      return unsafe String(cString: buffer.baseAddress!)
    }
  }
}
