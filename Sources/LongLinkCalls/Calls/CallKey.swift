// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

/// By what identical calls are known: what the server sees of them.
struct CallKey: Hashable, Sendable {
  let type: MessageType
  /// The body, or what the caller named in its stead.
  let bytes: [UInt8]
  let metadata: [String: String]
  let idempotencyKey: [UInt8]

  /// The bytes that it takes, roughly.
  var byteCount: Int {
    var count = bytes.count + idempotencyKey.count
    for (name, value) in metadata { count += 64 + name.utf8.count + value.utf8.count }
    return count
  }
}
