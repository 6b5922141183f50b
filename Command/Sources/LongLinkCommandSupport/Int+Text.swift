// SPDX-License-Identifier: Apache-2.0

import Foundation

extension Int {
  /// The number with commas between groups of three digits, such as `100,000`.
  package var grouped: String {
    formatted(.number.grouping(.automatic).locale(Locale(identifier: "en_US")))
  }
}
