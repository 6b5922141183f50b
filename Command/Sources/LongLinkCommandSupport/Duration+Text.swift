// SPDX-License-Identifier: Apache-2.0

import Foundation

extension Duration {
  /// The time in milliseconds, to the microsecond.
  package var milliseconds: Double {
    (self / .microseconds(1)).rounded() / 1000
  }

  /// The time in milliseconds, such as `0.123 ms`.
  package var inMilliseconds: String { String(format: "%.3f ms", milliseconds) }

  /// The time in seconds, such as `1.48 s`.
  package var inSeconds: String { String(format: "%.2f s", self / .seconds(1)) }
}
