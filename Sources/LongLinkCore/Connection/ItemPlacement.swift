// SPDX-License-Identifier: Apache-2.0

/// What became of an item that was to be sent.
package enum ItemPlacement: Equatable, Sendable {
  /// The item has been encoded to its end: another one can be sent.
  case encoded
  /// The item waits for credit or room. `itemSent` follows, unless the exchange ends before.
  case waiting
  /// The exchange, or its items, have ended: nothing will be sent.
  case ended
}
