// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

/// The identity of a call for de-duplication and the cache: everything that the server sees of it.
struct CallKey: Hashable, Sendable {
  let type: MessageType
  /// The body, or the caller's key (`Call.keyed(by:)`).
  let bytes: [UInt8]
  let metadata: [String: String]
  let idempotencyKey: [UInt8]

  /// The approximate size in memory, in bytes.
  var byteCount: Int {
    var count = bytes.count + idempotencyKey.count
    for (name, value) in metadata { count += 64 + name.utf8.count + value.utf8.count }
    return count
  }
}
