// SPDX-License-Identifier: Apache-2.0

extension Connection {
  /// The most bytes of metadata that are remembered.
  private static let longestBlock = 1024

  /// Decodes the metadata of a complete message, if any, into `lastMetadata`. It is checked even in
  /// a message that is dropped.
  @inline(__always)
  mutating func readMetadata(of message: Arrival) throws(Violation) {
    guard let slice = message.metadata, !repeatsLast(slice) else { return }
    do throws(BodyError) {
      lastMetadata = try withBody(slice, ReceivedMetadata.init(block:))
    } catch {
      throw Violation(.malformedControl, kind: message.kind.rawValue, serial: message.serial)
    }
  }

  /// Whether a block equals the last one, byte by byte. Most messages of a connection repeat it.
  private mutating func repeatsLast(_ slice: BodySlice) -> Bool {
    if let lastBlock, slice.count == lastBlock.count {
      let isSame = withBody(slice) { bytes in
        // Metadata is short, so that a loop is faster than a call.
        for index in lastBlock.indices {
          // In bounds: the counts are equal.
          let byte = unsafe bytes.unsafeLoad(fromUncheckedByteOffset: index, as: UInt8.self)
          if byte != lastBlock[index] { return false }
        }
        return true
      }
      if isSame { return true }
    }
    // The remembered size is bounded: large blocks repeat less often, and cost more.
    lastBlock =
      slice.count > Connection.longestBlock ? nil : withBody(slice) { [UInt8](decoding: $0) }
    return false
  }

  /// Forgets metadata that was too long to remember, once its message has been passed on.
  mutating func forgetLongMetadata() {
    if lastBlock == nil { forgetMetadata() }
  }

  /// Forgets the last metadata, and frees its memory.
  package mutating func forgetMetadata() {
    lastMetadata = ReceivedMetadata()
    lastBlock = []
  }
}
