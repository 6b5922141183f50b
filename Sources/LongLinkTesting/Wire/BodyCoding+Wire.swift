// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension BodyEncodable {
  /// The body's bytes, for values of a test, which can be encoded or are a mistake in the test.
  var wireBytes: [UInt8] {
    do throws(BodyError) {
      return try encodedBytes()
    } catch {
      preconditionFailure("this value has no encoding: \(error)")
    }
  }
}

extension BodyDecodable {
  /// Reads a body; nil where it cannot be read.
  init?(wire bytes: ArraySlice<UInt8>) {
    do throws(BodyError) {
      // The elements are bytes: there is no padding between them.
      try unsafe self.init(decoding: bytes.span.bytes)
    } catch {
      return nil
    }
  }
}
