// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

extension Outbox {
  /// The bytes that are to be written next.
  var nextBytes: [UInt8] {
    bytes.withBytes(chunk) { [UInt8](decoding: $0) }
  }
}
