// SPDX-License-Identifier: Apache-2.0

import Foundation

/// What a process uses, going by `/proc` (proc(5)); nil on systems without it.
struct ProcessUsage: Equatable, Sendable {
  /// Resident memory, in bytes.
  var resident: Int
  /// Open descriptors.
  var descriptors: Int

  /// Asks for a process that runs.
  init?(of process: Int32) {
    guard
      let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8),
      let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") }),
      let kibibytes = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first
        .flatMap({ Int($0) }),
      let entries = try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd")
    else { return nil }
    resident = kibibytes * 1024
    descriptors = entries.count
  }
}

/// What a process used in the course of time.
struct UsageSeries: Sendable {
  private var resident: [Int] = []

  mutating func append(resident bytes: Int) {
    resident.append(bytes)
  }

  /// The medians of the first and of the last third; nil where there are too few.
  var thirds: (first: Int, last: Int)? {
    let third = resident.count / 3
    guard third > 0 else { return nil }
    return (UsageSeries.median(resident.prefix(third)), UsageSeries.median(resident.suffix(third)))
  }

  private static func median(_ values: some Collection<Int>) -> Int {
    values.sorted()[values.count / 2]
  }

  /// The most that the last third may use: a quarter and 4 MiB over the first. What an allocator
  /// keeps comes and goes with the load; a leak of 200 bytes a request is found in ten minutes.
  static func limit(after first: Int) -> Int { first + first / 4 + (4 << 20) }
}
