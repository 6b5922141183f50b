// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension WaterMarks {
  /// Throws `invalidConfiguration` if a mark is out of range.
  package func validate(field: String) throws(LongLinkError) {
    if high < 1 { throw .configuration("\(field).high", "\(high) is below 1") }
    if low < 0 { throw .configuration("\(field).low", "\(low) is negative") }
    if large < 1 { throw .configuration("\(field).large", "\(large) is below 1") }
    if low >= high { throw .configuration("\(field).low", "\(low) is not below \(field).high") }
  }

  /// Lowers `large` to half of `limits.maxUnreadOutput`, which leaves room for responses.
  package func limited(by maxUnreadOutput: Int) -> WaterMarks {
    WaterMarks(high: high, low: low, large: min(large, max(1, maxUnreadOutput / 2)))
  }
}
