// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension BodyDecodable {
  /// Decodes a message from an array, within the limit of its type. An array is not copied.
  package init(copying bytes: [UInt8]) throws(BodyError) {
    if Self.self == [UInt8].self {
      self = unsafe unsafeBitCast(bytes, to: Self.self)
      return
    }
    var memory = DecodingMemory(for: Self.self)
    try self.init(copying: bytes, charging: &memory)
  }

  /// Decodes a message from an array.
  package init(
    copying bytes: [UInt8], charging memory: inout DecodingMemory
  ) throws(BodyError) {
    self = try unsafe bytes.withUnsafeBufferPointer { (buffer) throws(BodyError) in
      // The span does not outlive the call, so it does not outlive the array's memory.
      try Self(
        decoding: unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(buffer)), charging: &memory)
    }
  }
}
