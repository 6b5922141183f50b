// SPDX-License-Identifier: Apache-2.0

import CCount
import Foundation

/// The resource usage of the process since its start.
package struct Usage: Sendable {
  /// By the monotonic clock, in nanoseconds.
  package let time: UInt64
  /// In seconds of one CPU.
  package let cpu: Double
  package let allocations: UInt64
  package let systemCalls: UInt64

  package static var now: Usage {
    Usage(
      time: nanoseconds(), cpu: Double(readClock(CLOCK_PROCESS_CPUTIME_ID)) / 1e9,
      allocations: count_allocations(), systemCalls: count_system_calls())
  }

  /// The monotonic clock, in nanoseconds.
  @inline(__always)
  package static func nanoseconds() -> UInt64 {
    readClock(CLOCK_MONOTONIC)
  }

  /// The peak resident memory so far, in bytes.
  package static var peakMemory: UInt64 {
    #if os(Linux)
    // getrusage(2) includes the memory of the parent process.
    status("VmHWM:")
    #else
    var usage = rusage()
    getrusage(RUSAGE_SELF, &usage)
    return UInt64(usage.ru_maxrss)
    #endif
  }

  /// The resident memory, in bytes; 0 if the system does not report it.
  package static var residentMemory: UInt64 { status("VmRSS:") }

  /// The bytes that are allocated, with what the allocator keeps beside them; 0 if it does not say.
  package static var heap: UInt64 { allocated_bytes() }

  /// A number of bytes from proc_pid_status(5).
  private static func status(_ name: String) -> UInt64 {
    let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
    let kibibytes = line?.split { !$0.isNumber }.first.flatMap { UInt64($0) }
    return (kibibytes ?? 0) * 1_024
  }
}

func readClock(_ clock: clockid_t) -> UInt64 {
  var time = timespec()
  clock_gettime(clock, &time)
  return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}
