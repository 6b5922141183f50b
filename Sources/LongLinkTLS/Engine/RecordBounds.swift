// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkTLS
internal import COpenSSL

/// What the records of a peer may be, before OpenSSL takes them.
///
/// A record is judged by what is not encrypted of it. A value is how far a server is in the
/// messages of one client's handshake, which may begin in one record and end in another.
package struct RecordBounds {
  /// The largest record: 2^14 bytes, and what encryption may add (RFC 5246, 6.2.3).
  private static let largestRecord = 16_384 + 2_048
  /// The largest ClientHello: a ticket of the largest session that a client keeps, and 8 KiB of
  /// other extensions. OpenSSL would reserve 128 KiB as soon as the length of one has come.
  private static let largestHello = Int(CLL_LARGEST_SESSION) + 8_192

  private static let headerLength = Int(SSL3_RT_HEADER_LENGTH)
  private static let kinds = SSL3_RT_CHANGE_CIPHER_SPEC...SSL3_RT_APPLICATION_DATA

  private(set) var progress: cll_hello_progress

  init(_ progress: cll_hello_progress) {
    self.progress = progress
  }

  package init() { self.init(cll_hello_progress()) }

  /// Returns the length of the first record if it is whole, 0 if it is not, and the length of
  /// everything if it can be none: OpenSSL then says what is wrong.
  package static func length(of input: Span<UInt8>) -> Int {
    guard !input.isEmpty else { return 0 }
    guard kinds.contains(CInt(input[0])), input.count < 2 || hasVersion(input) else {
      return input.count
    }
    var rest = input.indices.dropFirst(headerLength - 2)
    guard let size = input.takeNumber(2, from: &rest) else { return 0 }
    guard size <= largestRecord else { return input.count }
    return input.take(size, from: &rest).map { $0.upperBound } ?? 0
  }

  /// Whether the first bytes of a peer are no record that may come first.
  package static func isPlain(_ input: Span<UInt8>, fromClient: Bool) -> Bool {
    guard !input.isEmpty else { return false }
    let kind = CInt(input[0])
    guard kind == SSL3_RT_HANDSHAKE || kind == SSL3_RT_ALERT && !fromClient else { return true }
    return input.count >= 2 && !hasVersion(input)
  }

  /// Whether the bytes behind the kind are of a version of TLS, or of SSL 3.0.
  private static func hasVersion(_ input: Span<UInt8>) -> Bool {
    CInt(input[1]) == SSL3_VERSION_MAJOR
  }

  /// Whether a record of a client, before the server encrypts, announces a hello that is too large.
  /// `isOld`: the handshake is known to be of TLS 1.2.
  package mutating func announcesLargeHello(_ record: Span<UInt8>, isOld: Bool) -> Bool {
    guard !progress.has_old_cipher else { return false }
    let kind = CInt(record[0])
    // The handshake of TLS 1.2 ends with an encrypted record of the same kind. A client of TLS 1.3
    // may send this record before its second hello, and encrypts in records of another kind.
    if kind == SSL3_RT_CHANGE_CIPHER_SPEC, isOld { progress.has_old_cipher = true }
    guard kind == SSL3_RT_HANDSHAKE else { return false }
    var rest = record.indices.dropFirst(RecordBounds.headerLength)
    while !rest.isEmpty {
      if progress.body_left > 0 {
        let count = min(rest.count, progress.body_left)
        progress.body_left -= count
        rest.removeFirst(count)
        continue
      }
      progress.header = progress.header << 8 | UInt32(record[rest.removeFirst()])
      progress.header_count += 1
      guard progress.header_count == SSL3_HM_HEADER_LENGTH else { continue }
      progress.header_count = 0
      progress.body_left = Int(progress.header & 0xFF_FFFF)
      let isHello = progress.header >> 24 == SSL3_MT_CLIENT_HELLO
      if isHello, progress.body_left > RecordBounds.largestHello { return true }
    }
    return false
  }
}
