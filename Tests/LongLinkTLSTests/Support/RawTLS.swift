// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// A client of TLS that verifies nothing and may misbehave, or such a server: OpenSSL over two
/// buffers.
@safe final class RawTLS {
  private var context: OpaquePointer?
  private var ssl: OpaquePointer?
  private let input: OpaquePointer
  private let output: OpaquePointer
  private let isServer: Bool

  /// `protocols` is ALPN's list; nil sends none. `chain` and `key` are files of its certificate.
  /// Its records carry at most `fragment` bytes.
  init(
    protocols: String? = "\u{a}longlink/1", version: CInt = TLS1_3_VERSION, chain: String? = nil,
    key: String? = nil, fragment: Int? = nil
  ) {
    isServer = false
    unsafe context = SSL_CTX_new(TLS_client_method())
    if let chain, let key {
      unsafe SSL_CTX_use_certificate_chain_file(context, chain)
      unsafe SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM)
    }
    if let fragment {
      _ = unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_SEND_FRAGMENT, fragment, nil)
    }
    _ = unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil)
    if let protocols {
      let bytes = Array(protocols.utf8)
      unsafe SSL_CTX_set_alpn_protos(context, bytes, CUnsignedInt(bytes.count))
    }
    unsafe ssl = SSL_new(context)
    unsafe (input, output) = RawTLS.connect(ssl, isServer)
  }

  /// The protocol that a server chooses, whatever the client has offered.
  enum Choice: Sendable {
    case longLink
    case other
    case none
  }

  /// Makes a server, whose certificate is in files.
  init(
    serverOf chain: String, key: String, choosing choice: Choice = .longLink,
    version: CInt = TLS1_3_VERSION
  ) {
    isServer = true
    unsafe context = SSL_CTX_new(TLS_server_method())
    unsafe SSL_CTX_use_certificate_chain_file(context, chain)
    unsafe SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM)
    _ = unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil)
    switch choice {
    case .longLink:
      unsafe SSL_CTX_set_alpn_select_cb(
        context, { _, name, size, _, _, _ in unsafe RawTLS.choose("longlink/1", name, size) }, nil)
    case .other:
      unsafe SSL_CTX_set_alpn_select_cb(
        context, { _, name, size, _, _, _ in unsafe RawTLS.choose("h2", name, size) }, nil)
    case .none: break
    }
    unsafe ssl = SSL_new(context)
    unsafe (input, output) = RawTLS.connect(ssl, isServer)
  }

  /// Called by OpenSSL.
  @unsafe private static func choose(
    _ name: StaticString, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
    _ size: UnsafeMutablePointer<UInt8>?
  ) -> CInt {
    unsafe chosen?.pointee = name.utf8Start
    unsafe size?.pointee = UInt8(name.utf8CodeUnitCount)
    return SSL_TLSEXT_ERR_OK
  }

  /// Makes another side with the settings of one, its keys of tickets too.
  init(like other: RawTLS) {
    isServer = other.isServer
    unsafe context = other.context
    unsafe SSL_CTX_up_ref(context)
    unsafe ssl = SSL_new(context)
    unsafe (input, output) = RawTLS.connect(ssl, isServer)
  }

  @unsafe private static func connect(
    _ ssl: OpaquePointer?, _ isServer: Bool
  ) -> (OpaquePointer, OpaquePointer) {
    let input = unsafe BIO_new(BIO_s_mem())
    let output = unsafe BIO_new(BIO_s_mem())
    unsafe SSL_set_bio(ssl, input, output)
    if isServer {
      unsafe SSL_set_accept_state(ssl)
    } else {
      unsafe SSL_set_connect_state(ssl)
    }
    return unsafe (input!, output!)
  }

  deinit {
    free()
  }

  /// Frees its memory. Nothing may be called behind it.
  func free() {
    unsafe SSL_free(ssl)
    unsafe SSL_CTX_free(context)
    unsafe (ssl, context) = (nil, nil)
  }

  /// Takes bytes of the peer.
  func receive(_ bytes: [UInt8]) {
    guard !bytes.isEmpty else { return }
    unsafe BIO_write(input, bytes, CInt(bytes.count))
  }

  /// What is to be sent.
  func takeOutput() -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe BIO_read(output, &buffer, CInt(buffer.count))
      guard count > 0 else { return bytes }
      bytes += buffer[..<Int(count)]
    }
  }

  /// Goes on with the handshake; returns whether it is over.
  func handshake() -> Bool { unsafe SSL_do_handshake(ssl) == 1 }

  func write(_ bytes: [UInt8]) -> [UInt8] {
    unsafe SSL_write(ssl, bytes, CInt(bytes.count))
    return takeOutput()
  }

  /// Decrypted bytes of the application.
  func read() -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe SSL_read(ssl, &buffer, CInt(buffer.count))
      guard count > 0 else { return bytes }
      bytes += buffer[..<Int(count)]
    }
  }

  /// A record that asks the peer for new keys.
  func updateKeys() -> [UInt8] {
    unsafe SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED)
    unsafe SSL_do_handshake(ssl)
    return takeOutput()
  }

  /// Asks the peer for a new handshake, as TLS 1.2 has it.
  func renegotiate() -> [UInt8] {
    unsafe SSL_renegotiate(ssl)
    unsafe SSL_do_handshake(ssl)
    return takeOutput()
  }

  /// Resumes the session of another client with its handshake; one of TLS 1.2.
  func resume(_ other: RawTLS) {
    let session = unsafe SSL_get1_session(other.ssl)
    unsafe SSL_set_session(ssl, session)
    unsafe SSL_SESSION_free(session)
  }

  /// Whether the handshake resumed a session.
  var isResumed: Bool { unsafe SSL_session_reused(ssl) == 1 }

  /// Whether the peer has ended its side in good order.
  var hasReceivedEnd: Bool { unsafe SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN != 0 }

  func close() -> [UInt8] {
    unsafe SSL_shutdown(ssl)
    return takeOutput()
  }
}
