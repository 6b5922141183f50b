// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension Link {
  /// The metadata of the message that the owner is being told of; nil where it has none.
  package var metadata: ReceivedMetadata? { hasMetadata ? lastMetadata : nil }

  /// The same, where it says more of a request than the time that remains.
  var notableMetadata: ReceivedMetadata? { hasMetadata && !isPlain ? lastMetadata : nil }

  /// The time that remains by it, in milliseconds; nil where it says nothing of that.
  var remaining: UInt32? { hasMetadata ? lastMetadata.remaining : nil }

  /// Decodes a message's metadata; false when that cannot be done, which ends the connection,
  /// whether anybody wants the message or not.
  @inline(__always)
  func judgeMetadata(of message: Arrival) -> Bool {
    hasMetadata = message.hasMetadata
    return !hasMetadata || core.repeatsMetadata(message) || decodeMetadata(of: message)
  }

  private func decodeMetadata(of message: Arrival) -> Bool {
    guard let slice = message.metadata else { return true }
    do throws(BodyError) {
      lastMetadata = try core.withBody(slice, ReceivedMetadata.init(block:))
      return true
    } catch {
      hasMetadata = false
      core.failed(toDecode: message.kind, serial: message.serial)
      return false
    }
  }
}
