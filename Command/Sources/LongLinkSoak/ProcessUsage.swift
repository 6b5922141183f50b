// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The resources that a process uses, according to `/proc` (proc(5)).
struct ProcessUsage: Equatable, Sendable {
  /// Resident memory, in bytes.
  var resident: Int
  /// Open descriptors.
  var descriptors: Int

  /// Reads the usage of a running process; nil on systems without `/proc`.
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

/// The memory that a process used over time.
struct UsageSeries: Sendable {
  private var resident: [Int] = []

  mutating func append(resident bytes: Int) {
    resident.append(bytes)
  }

  /// The medians of the first and of the last third; nil if there are too few values.
  var thirds: (first: Int, last: Int)? {
    let third = resident.count / 3
    guard third > 0 else { return nil }
    return (UsageSeries.median(resident.prefix(third)), UsageSeries.median(resident.suffix(third)))
  }

  private static func median(_ values: some Collection<Int>) -> Int {
    values.sorted()[values.count / 2]
  }

  /// The maximum for the last third: a quarter and 4 MiB over the first. Memory that the allocator
  /// keeps varies with the load; a leak of 200 bytes per request is found in ten minutes.
  static func limit(after first: Int) -> Int { first + first / 4 + (4 << 20) }
}
