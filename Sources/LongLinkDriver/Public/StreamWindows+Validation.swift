// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension StreamWindows {
  /// Throws if a value is out of range.
  package func validate(field: String) throws(LongLinkError) {
    if first < Wire.leastCredit { throw .configuration("\(field).first", "it is below 1,024") }
    if largest < first { throw .configuration("\(field).largest", "it is below first") }
    if total < first { throw .configuration("\(field).total", "it is below first") }
    if largest > Wire.mostCredit {
      throw .configuration("\(field).largest", "it is above 2,147,483,647")
    }
  }
}
