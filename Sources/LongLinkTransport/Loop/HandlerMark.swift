// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import Synchronization

/// Says which handler runs on a loop: the loop sets it, and any thread may read it.
package struct HandlerMark: ~Copyable, Sendable {
  /// A message type has 24 bits, so this is none.
  private static var none: UInt32 { .max }

  private let number = Atomic(HandlerMark.none)

  /// The type of the request whose handler began last; nil if it has returned, or was suspended.
  ///
  /// On a loop that does not time its handlers, it is also nil only from the next turn on.
  package var type: MessageType? {
    let number = number.load(ordering: .relaxed)
    return number == HandlerMark.none ? nil : MessageType(rawValue: number)
  }

  func set(_ type: MessageType) { number.store(type.rawValue, ordering: .relaxed) }

  func clear() { number.store(HandlerMark.none, ordering: .relaxed) }
}
