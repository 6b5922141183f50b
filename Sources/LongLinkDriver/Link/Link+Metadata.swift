// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension Link {
  /// The metadata of the message that is being delivered to the owner, if any.
  package var metadata: ReceivedMetadata? { hasMetadata ? lastMetadata : nil }

  /// The same, if it holds more than the remaining time.
  var notableMetadata: ReceivedMetadata? { hasMetadata && !isPlain ? lastMetadata : nil }

  /// The remaining time that it states, in milliseconds, if any.
  var remaining: UInt32? { hasMetadata ? lastMetadata.remaining : nil }

  /// Decodes a message's metadata. Returns false if it is malformed, which ends the connection even
  /// if the message would have been dropped.
  @inline(__always)
  func validateMetadata(of message: Arrival) -> Bool {
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
