// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension BodyDecodable {
  /// Decodes a message from an array.
  package init(copying bytes: [UInt8]) throws(BodyError) {
    self = try unsafe bytes.withUnsafeBufferPointer { (buffer) throws(BodyError) in
      // The span does not outlive the call, so it does not outlive the array's memory.
      try Self(decoding: unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(buffer)))
    }
  }
}
