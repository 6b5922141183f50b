// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Ends the process when its standard input does: for a server that must not outlive the process
/// which started it, and holds the other end.
package enum ParentWatch {
  /// Calls `onLine`, on a thread of its own, for each line that the parent writes.
  package static func start(onLine: @escaping @Sendable () -> Void = {}) {
    Thread.detachNewThread {
      let input = FileHandle.standardInput
      while let byte = try? input.read(upToCount: 1)?.first {
        if byte == UInt8(ascii: "\n") { onLine() }
      }
      exit(ExitStatus.failure)
    }
  }
}
