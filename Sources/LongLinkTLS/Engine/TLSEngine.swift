// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkTLS
internal import LongLinkCore
internal import LongLinkTransport

/// One side of one connection: it turns bytes of the application into records, and back.
///
/// It knows no transport. Each call takes what has come from the peer and says how much of it is
/// used; bytes for the peer are returned by `write`, or wait until they are taken (`moveLate`).
@safe struct TLSEngine: ~Copyable {
  /// Nobody else has the pointer.
  private let engine: OpaquePointer
  /// The engine uses its memory.
  let context: TLSContext

  /// What a call has done.
  struct Step {
    let status: Status
    /// The bytes of the input that are used up.
    let consumed: Int
    /// The bytes of the application that were read or taken.
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
    /// The handshake is over; or bytes were read, and more may wait.
    case done
    case wantsInput
    /// The peer has ended its side in good order.
    case ended
    case failed
  }

  /// Returns nil if there is no memory. `now` is the time in seconds since 1970 that certificates
  /// are judged by.
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

  /// Sets the name or address that the server's certificate has to have.
  func setName(_ name: String, isAddress: Bool) -> Bool {
    unsafe cll_tls_engine_set_name(engine, name, isAddress)
  }

  /// Sets a session to be resumed.
  func setSession(_ session: [UInt8]) {
    // One that is of no use any more leads to a full handshake.
    _ = unsafe session.withUnsafeBufferPointer {
      unsafe cll_tls_engine_set_session(engine, $0.baseAddress, $0.count)
    }
  }

  // MARK: Bytes

  /// Goes on with the handshake.
  func handshake(_ input: RawSpan) -> Step {
    unsafe input.withUnsafeBytes { input in
      unsafe Step(
        cll_tls_handshake(
          engine, input.baseAddress?.assumingMemoryBound(to: UInt8.self), input.count))
    }
  }

  /// Decrypts as many records as fit.
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

  /// Encrypts all of some bytes to the end of a queue, behind what waits.
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

  /// The room for the records of some bytes, with a little for a ticket or an answer.
  private static func room(for count: Int) -> Int {
    count + (count / 16_384 + 1) * 64 + 1_024
  }

  /// Writes the end of this side.
  func close() {
    unsafe cll_tls_close(engine)
  }

  /// Sends this number of tickets with the next bytes.
  func sendTickets(_ count: CInt) {
    unsafe cll_tls_engine_send_tickets(engine, count)
  }

  /// The bytes that wait for the peer.
  var lateBytes: Int { unsafe cll_tls_late_count(engine) }

  /// Moves the bytes that wait for the peer.
  func moveLate(to queue: inout ByteQueue) {
    let count = lateBytes
    guard count > 0 else { return }
    unsafe queue.append(count: count) { room in
      unsafe cll_tls_take_late(engine, room.baseAddress?.assumingMemoryBound(to: UInt8.self))
    }
  }

  /// Frees OpenSSL's buffers, unless bytes wait in them. A connection that is used has them again
  /// after a few records.
  func releaseBuffers() { unsafe cll_tls_release_buffers(engine) }

  /// What each of OpenSSL's two buffers holds; one of them while a record is partly read.
  private static let recordMemory = 17 * 1_024

  /// The memory of OpenSSL's buffers, which it may keep between records.
  var heldBytes: Int {
    if unsafe cll_tls_keeps_buffers(engine) { return 2 * TLSEngine.recordMemory }
    return hasPending ? TLSEngine.recordMemory : 0
  }

  /// Whether decrypted bytes wait.
  var hasPending: Bool { unsafe cll_tls_has_pending(engine) }

  /// Whether the peer has ended its side in good order, perhaps behind bytes that were read.
  var hasEnded: Bool { unsafe cll_tls_has_ended(engine) }
  /// Whether a call has failed, perhaps behind bytes that were read.
  var hasFailed: Bool { unsafe cll_tls_has_failed(engine) }

  /// Whether bytes begin with a whole record, or with what cannot become one.
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

  /// The certificate that the failure is about.
  var offender: PeerCertificate? {
    guard let certificate = unsafe cll_tls_engine_offender(engine) else { return nil }
    defer { unsafe cll_certificate_free(certificate) }
    return unsafe PeerCertificate(certificate)
  }

  /// The peer's certificate.
  var peer: PeerCertificate? {
    guard let certificate = unsafe cll_tls_engine_peer(engine) else { return nil }
    defer { unsafe cll_certificate_free(certificate) }
    return unsafe PeerCertificate(certificate)
  }

  /// Whether the handshake resumed an earlier one.
  var isResumed: Bool { unsafe cll_tls_engine_is_resumed(engine) }
  /// Whether the peer's chain had none of the pinned keys, and was taken.
  var hasMissedPin: Bool { unsafe cll_tls_engine_missed_pin(engine) }
  /// When the first certificate of the verified chain expires, or the first of this side's
  /// revocation lists, in seconds since 1970.
  var expiry: Int64 { unsafe cll_tls_engine_expiry(engine) }
  var version: String { unsafe String(cString: cll_tls_engine_version(engine)) }
  var cipher: String { unsafe String(cString: cll_tls_engine_cipher(engine)) }
  /// The name that the client has asked for.
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

  /// Takes a session that the server has given.
  func takeSession() -> [UInt8]? {
    var length = 0
    guard let bytes = unsafe cll_tls_engine_take_session(engine, &length) else { return nil }
    defer { unsafe cll_tls_free_bytes(bytes) }
    return unsafe [UInt8](UnsafeBufferPointer(start: bytes, count: length))
  }
}
