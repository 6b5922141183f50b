// SPDX-License-Identifier: Apache-2.0

import COpenSSL

/// A client of TLS that verifies nothing and may misbehave, or such a server: OpenSSL over two
/// buffers.
@safe final class RawTLS {
  private var context: OpaquePointer?
  private var ssl: OpaquePointer?
  private let input: OpaquePointer
  private let output: OpaquePointer

  /// `protocols` is ALPN's list; nil sends none. `chain` and `key` are files of its certificate.
  init(
    protocols: String? = "\u{a}longlink/1", version: CInt = TLS1_3_VERSION, chain: String? = nil,
    key: String? = nil
  ) {
    unsafe context = SSL_CTX_new(TLS_client_method())
    if let chain, let key {
      unsafe SSL_CTX_use_certificate_chain_file(context, chain)
      unsafe SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM)
    }
    _ = unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil)
    if let protocols {
      let bytes = Array(protocols.utf8)
      unsafe SSL_CTX_set_alpn_protos(context, bytes, CUnsignedInt(bytes.count))
    }
    unsafe ssl = SSL_new(context)
    unsafe (input, output) = RawTLS.connect(ssl)
  }

  /// Makes a server, whose certificate is in files.
  ///
  /// It chooses the protocol h2, whatever the client has offered, or none.
  init(serverOf chain: String, key: String, choosesOther: Bool) {
    unsafe context = SSL_CTX_new(TLS_server_method())
    unsafe SSL_CTX_use_certificate_chain_file(context, chain)
    unsafe SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM)
    if choosesOther {
      unsafe SSL_CTX_set_alpn_select_cb(
        context,
        { _, chosen, length, _, _, _ in
          let name: StaticString = "h2"
          unsafe chosen?.pointee = name.utf8Start
          unsafe length?.pointee = UInt8(name.utf8CodeUnitCount)
          return SSL_TLSEXT_ERR_OK
        }, nil)
    }
    unsafe ssl = SSL_new(context)
    unsafe (input, output) = RawTLS.connect(ssl)
    unsafe SSL_set_accept_state(ssl)
  }

  /// Makes another client with the settings of one.
  init(like other: RawTLS) {
    unsafe context = other.context
    unsafe SSL_CTX_up_ref(context)
    unsafe ssl = SSL_new(context)
    unsafe (input, output) = RawTLS.connect(ssl)
  }

  @unsafe private static func connect(_ ssl: OpaquePointer?) -> (OpaquePointer, OpaquePointer) {
    let input = unsafe BIO_new(BIO_s_mem())
    let output = unsafe BIO_new(BIO_s_mem())
    unsafe SSL_set_bio(ssl, input, output)
    unsafe SSL_set_connect_state(ssl)
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

  /// Whether the peer has ended its side in good order.
  var hasReceivedEnd: Bool { unsafe SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN != 0 }

  func close() -> [UInt8] {
    unsafe SSL_shutdown(ssl)
    return takeOutput()
  }
}
