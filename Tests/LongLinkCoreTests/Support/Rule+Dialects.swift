// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

extension Violation.Rule {
  /// The rules that exist only in dialects: no native frame can break them.
  static let ofDialects: Set<Violation.Rule> = [
    .typeNotAllowed, .fieldMismatch, .delimiterMissing,
  ]
}
