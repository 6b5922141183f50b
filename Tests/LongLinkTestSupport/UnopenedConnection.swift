// SPDX-License-Identifier: Apache-2.0

/// What a connection can make the server hold before it is open, in bytes.
///
/// The numbers in the documentation of the configuration and on its pages are the sums: 80 KiB, and
/// 136 KiB with TLS. A change to a part of them changes those numbers.
package enum UnopenedConnection {
  /// The first frame, of at most 65,536 bytes after its header, and what one read brings with it;
  /// this part counts towards `limits.memoryLimit`.
  package static let input = 65_536 + 16 + 4_096
  /// The connection itself, as while it is idle, and its answer to a hello.
  package static let state = 8_192
  /// The most bytes that a connection without TLS can make the server hold before it is open.
  package static let most = 81_920

  /// What TLS holds during its handshake, before there can be any part of the first frame.
  ///
  /// That is OpenSSL's own state, its buffer of one message (of the certificates of a client, at
  /// most 16 KiB, which it reserves when their length has come, with a third more), the decoded
  /// certificates, of 512 parts, and the unfinished record after them, of 18 KiB.
  package static let security = 114_688
  /// What TLS holds after its handshake, beside the first frame: OpenSSL's state, and an unfinished
  /// record. Measured are 48 KiB.
  package static let openSecurity = 57_344
  /// The most bytes that a connection with TLS can make the server hold before it is open.
  package static let mostSecured = 139_264
}
