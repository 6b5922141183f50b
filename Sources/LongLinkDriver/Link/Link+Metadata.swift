// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension Link {
  /// The metadata of the message that is being delivered to the owner, if any.
  package var metadata: ReceivedMetadata? { hasMetadata ? core.inbox.metadata.last : nil }

  /// The metadata of the message that is being delivered, if it holds more than the remaining time.
  var notableMetadata: ReceivedMetadata? {
    hasMetadata && !core.inbox.metadata.isPlain ? core.inbox.metadata.last : nil
  }

  /// The remaining time that it states, in milliseconds, if any.
  var remaining: UInt32? { hasMetadata ? core.inbox.metadata.last.remaining : nil }
}
