// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkTLS
internal import COpenSSL

/// Limits on the records of a peer, checked before OpenSSL gets them.
///
/// A record is judged by its unencrypted bytes. A value tracks the handshake messages of one client
/// on a server: a message may begin in one record and end in another.
package struct RecordBounds {
  /// The largest record: 2^14 bytes, and what encryption may add (RFC 5246, 6.2.3).
  private static let largestRecord = 16_384 + 2_048
  /// The largest ClientHello, in bytes: a ticket of the largest session that a client keeps, and 8
  /// KiB of other extensions. OpenSSL would reserve 128 KiB as soon as a hello has stated that
  /// length.
  private static let largestHello = Int(CLL_LARGEST_SESSION) + 8_192

  private static let headerLength = Int(SSL3_RT_HEADER_LENGTH)
  private static let kinds = SSL3_RT_CHANGE_CIPHER_SPEC...SSL3_RT_APPLICATION_DATA

  private(set) var progress: cll_hello_progress

  init(_ progress: cll_hello_progress) {
    self.progress = progress
  }

  package init() { self.init(cll_hello_progress()) }

  /// Returns the length of the first record if it is whole, and 0 if it is not. If the bytes cannot
  /// be a record, returns the length of all of them: OpenSSL then says what is wrong.
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

  /// Whether the first bytes of a peer are not TLS: they cannot begin a first record.
  package static func isPlain(_ input: Span<UInt8>, fromClient: Bool) -> Bool {
    guard !input.isEmpty else { return false }
    let kind = CInt(input[0])
    guard kind == SSL3_RT_HANDSHAKE || kind == SSL3_RT_ALERT && !fromClient else { return true }
    return input.count >= 2 && !hasVersion(input)
  }

  /// Whether the version field is that of TLS, or of SSL 3.0.
  private static func hasVersion(_ input: Span<UInt8>) -> Bool {
    CInt(input[1]) == SSL3_VERSION_MAJOR
  }

  /// Whether an unencrypted record of a client announces a hello that is too large. `isOld`: the
  /// handshake is known to be of TLS 1.2.
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
