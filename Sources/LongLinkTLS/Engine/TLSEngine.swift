// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkTLS
internal import LongLinkCore
internal import LongLinkTransport

/// One side of one TLS connection: it turns the application's bytes into records, and back.
///
/// It knows no transport. Each call takes bytes from the peer and says how many of them it used;
/// bytes for the peer are returned by `write`, or wait until `moveLate` takes them.
@safe struct TLSEngine: ~Copyable {
  /// Only this object has the pointer, and frees it.
  private let engine: OpaquePointer
  /// Kept because the engine uses the context's memory.
  let context: TLSContext

  /// The result of a call.
  struct Step {
    let status: Status
    /// The bytes of the input that are used up.
    let consumed: Int
    /// The number of the application's bytes that were read or taken.
    let count: Int

    init(_ step: cll_tls_step) {
      switch UInt32(step.status) {
      case CLL_TLS_DONE.rawValue: status = .done
      case CLL_TLS_WANTS_INPUT.rawValue: status = .wantsInput
      case CLL_TLS_ENDED.rawValue: status = .ended
      default: status = .failed
      }
      consumed = step.consumed
      count = step.count
    }
  }

  enum Status {
    /// The handshake is complete; or bytes were read, and more may wait.
    case done
    case wantsInput
    /// The peer has ended its side in good order.
    case ended
    case failed
  }

  /// Makes an engine; nil if there is no memory. `now` is the time, in seconds since 1970, at which
  /// certificates have to be valid.
  init?(_ context: TLSContext, now: Int64) {
    guard let engine = unsafe context.withPointer({ unsafe cll_tls_engine_new($0, now) }) else {
      return nil
    }
    unsafe self.engine = engine
    self.context = context
  }

  deinit {
    unsafe cll_tls_engine_free(engine)
  }

  /// Sets the name or address that the server's certificate must have. Returns false if OpenSSL
  /// does not take it.
  func setName(_ name: String, isAddress: Bool) -> Bool {
    unsafe cll_tls_engine_set_name(engine, name, isAddress)
  }

  /// Sets a session that the handshake tries to resume.
  func setSession(_ session: [UInt8]) {
    // A session that is no longer of use leads to a full handshake.
    _ = unsafe session.withUnsafeBufferPointer {
      unsafe cll_tls_engine_set_session(engine, $0.baseAddress, $0.count)
    }
  }

  // MARK: Bytes

  /// Continues the handshake with bytes from the peer.
  func handshake(_ input: RawSpan) -> Step {
    unsafe input.withUnsafeBytes { input in
      unsafe Step(
        cll_tls_handshake(
          engine, input.baseAddress?.assumingMemoryBound(to: UInt8.self), input.count))
    }
  }

  /// Decrypts as many records as fit into `output`.
  func read(_ input: RawSpan, into output: inout OutputRawSpan) -> Step {
    unsafe output.withUnsafeMutableBytes { bytes, initialized in
      let room = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[initialized...])
      let step = unsafe input.withUnsafeBytes { input in
        unsafe Step(
          cll_tls_read(
            engine, input.baseAddress?.assumingMemoryBound(to: UInt8.self), input.count,
            room.baseAddress?.assumingMemoryBound(to: UInt8.self), room.count))
      }
      initialized += step.count
      return step
    }
  }

  /// Encrypts all of `bytes` and appends the records to `queue`, after bytes that wait for the
  /// peer.
  func write(_ bytes: RawSpan, to queue: inout ByteQueue) -> Step {
    moveLate(to: &queue)
    let step = queue.append(capacity: TLSEngine.room(for: bytes.byteCount)) { output in
      unsafe output.withUnsafeMutableBytes { room, initialized in
        unsafe bytes.withUnsafeBytes { bytes in
          let step = unsafe cll_tls_write(
            engine, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count,
            room.baseAddress?.assumingMemoryBound(to: UInt8.self), room.count)
          initialized += step.produced
          return Step(step)
        }
      }
    }
    moveLate(to: &queue)
    return step
  }

  /// The room in bytes for the records of `count` bytes, with some for a ticket or an answer.
  private static func room(for count: Int) -> Int {
    count + (count / 16_384 + 1) * 64 + 1_024
  }

  /// Puts the end of this side (`close_notify`) after the bytes that wait for the peer.
  func close() {
    unsafe cll_tls_close(engine)
  }

  /// Issues this number of tickets, which leave with the next bytes.
  func sendTickets(_ count: CInt) {
    unsafe cll_tls_engine_send_tickets(engine, count)
  }

  /// The number of bytes that wait for the peer.
  var lateBytes: Int { unsafe cll_tls_late_count(engine) }

  /// Moves the bytes that wait for the peer to the end of a queue.
  func moveLate(to queue: inout ByteQueue) {
    let count = lateBytes
    guard count > 0 else { return }
    unsafe queue.append(count: count) { room in
      unsafe cll_tls_take_late(engine, room.baseAddress?.assumingMemoryBound(to: UInt8.self))
    }
  }

  /// Frees OpenSSL's buffers, unless bytes wait in them. A connection in use keeps buffers again
  /// after a few records.
  func releaseBuffers() { unsafe cll_tls_release_buffers(engine) }

  /// The size of each of OpenSSL's two buffers, in bytes; one is in use while a record is partly
  /// read.
  private static let recordMemory = 17 * 1_024

  /// The bytes that OpenSSL's buffers hold; it may keep them between records.
  var heldBytes: Int {
    if unsafe cll_tls_keeps_buffers(engine) { return 2 * TLSEngine.recordMemory }
    return hasPending ? TLSEngine.recordMemory : 0
  }

  /// Whether decrypted bytes wait.
  var hasPending: Bool { unsafe cll_tls_has_pending(engine) }

  /// Whether the peer has ended its side in good order, perhaps after bytes that a call has
  /// returned.
  var hasEnded: Bool { unsafe cll_tls_has_ended(engine) }
  /// Whether a call has failed, perhaps after bytes that it has returned.
  var hasFailed: Bool { unsafe cll_tls_has_failed(engine) }

  /// Whether the bytes begin with a whole record, or cannot become one.
  static func hasRecord(_ input: RawSpan) -> Bool {
    RecordBounds.length(of: Span(_bytes: input)) > 0
  }

  // MARK: Facts

  /// Why a call has failed.
  var failure: TLSFailure {
    let failure = unsafe cll_tls_engine_failure(engine)
    return unsafe TLSFailure(
      kind: failure.kind, code: failure.code,
      text: failure.text.map { unsafe String(cString: $0) })
  }

  /// The certificate that caused the failure; nil if none did.
  var offender: PeerCertificate? {
    guard let certificate = unsafe cll_tls_engine_offender(engine) else { return nil }
    defer { unsafe cll_certificate_free(certificate) }
    return unsafe PeerCertificate(certificate)
  }

  /// The peer's certificate; nil if it has shown none.
  var peer: PeerCertificate? {
    guard let certificate = unsafe cll_tls_engine_peer(engine) else { return nil }
    defer { unsafe cll_certificate_free(certificate) }
    return unsafe PeerCertificate(certificate)
  }

  /// Whether the handshake resumed an earlier session.
  var isResumed: Bool { unsafe cll_tls_engine_is_resumed(engine) }
  /// Whether the peer's chain has none of the pinned keys, and was accepted all the same.
  var hasMissedPin: Bool { unsafe cll_tls_engine_missed_pin(engine) }
  /// The earliest expiry, in seconds since 1970, of the verified chain and of this side's
  /// revocation lists.
  var expiry: Int64 { unsafe cll_tls_engine_expiry(engine) }
  var version: String { unsafe String(cString: cll_tls_engine_version(engine)) }
  var cipher: String { unsafe String(cString: cll_tls_engine_cipher(engine)) }
  /// The name that the client has asked for (SNI); nil for none.
  var serverName: String? {
    unsafe cll_tls_engine_server_name(engine).map { unsafe String(cString: $0) }
  }

  /// How the connection is secured, once the handshake is over.
  func security(of side: TLSSide, verifiesPeer: Bool) -> ConnectionSecurity {
    ConnectionSecurity(
      version: version, cipher: cipher, applicationProtocol: "longlink/1",
      serverName: (side.isServer ? serverName : side.name).map { "\(PeerText($0))" },
      peerCertificate: verifiesPeer ? peer : nil, isResumed: isResumed)
  }

  /// Takes the next session that the server has given; nil if there is none.
  func takeSession() -> [UInt8]? {
    var length = 0
    guard let bytes = unsafe cll_tls_engine_take_session(engine, &length) else { return nil }
    defer { unsafe cll_tls_free_bytes(bytes) }
    return unsafe [UInt8](UnsafeBufferPointer(start: bytes, count: length))
  }
}
