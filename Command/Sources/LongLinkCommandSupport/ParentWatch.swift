// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Ends the process when its standard input ends, so that it does not outlive its parent, which
/// holds the other end.
package enum ParentWatch {
  /// Calls `onLine`, on a separate thread, for each line that the parent writes.
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
