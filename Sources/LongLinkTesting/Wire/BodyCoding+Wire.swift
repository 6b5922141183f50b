// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension BodyEncodable {
  /// The body's bytes. A test's value that cannot be encoded is a programming error.
  var wireBytes: [UInt8] {
    do throws(BodyError) {
      return try encodedBytes()
    } catch {
      preconditionFailure("this value cannot be encoded: \(error)")
    }
  }
}

extension BodyDecodable {
  /// Decodes a body; nil if it is invalid.
  init?(wire bytes: ArraySlice<UInt8>) {
    do throws(BodyError) {
      // The elements are bytes: there is no padding between them.
      try unsafe self.init(decoding: bytes.span.bytes)
    } catch {
      return nil
    }
  }
}
