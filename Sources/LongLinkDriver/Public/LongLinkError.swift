// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkTransport

/// Why an operation failed and, for a request, whether it may have run.
///
/// Let `delivery` decide whether you retry, not `code`: no code tells whether a retry is safe.
public struct LongLinkError: Error, Sendable {
  /// The kind of failure. Later versions may add codes.
  public struct Code: Hashable, Sendable, CaseIterable, CustomStringConvertible {
    private let name: String

    private init(_ name: String) {
      self.name = name
    }

    /// There is no connection, and the operation does not wait for one.
    public static let notConnected = Code("notConnected")
    /// The connect, its handshake or `prepare` failed, there was no credential, or no short link
    /// could be opened; or a server cannot listen. See `detail`, `systemError` and `peer`.
    public static let connectFailed = Code("connectFailed")
    /// The connection could not be secured; `securityFailure` states why, and what to do.
    public static let securityFailed = Code("securityFailed")
    /// The server did not accept this client: `response` is 401 or 403, `detail` has its reason.
    public static let notAccepted = Code("notAccepted")
    /// The connection ended before the response came; `closeReason` states why.
    public static let connectionLost = Code("connectionLost")
    /// The time was over: the deadline of a request before its response came, the timeout of a push
    /// that waited, or the `itemTimeout` of a stream.
    public static let deadlineExceeded = Code("deadlineExceeded")
    /// The caller cancelled the operation, or its task was cancelled.
    public static let cancelled = Code("cancelled")
    /// The peer responded with a code other than 200, or refused the request because it drains; see
    /// `response` and `body`.
    public static let rejected = Code("rejected")
    /// A frame failed its checksum; the connection was closed.
    public static let corrupted = Code("corrupted")
    /// One side broke a rule of the protocol; the connection was closed.
    public static let protocolViolation = Code("protocolViolation")
    /// The body is larger than the peer accepts, or the key of a request that runs once is too
    /// long.
    public static let tooLarge = Code("tooLarge")
    /// The message cannot be encoded.
    public static let encodingFailed = Code("encodingFailed")
    /// The response, push or item arrived, but does not decode as the expected message.
    public static let decodingFailed = Code("decodingFailed")
    /// The dialect, or the peer, has no such operation; `detail` states what is missing.
    public static let unsupported = Code("unsupported")
    /// A queue or buffer is full, or memory is short; `detail` states the bound and what waits.
    public static let overloaded = Code("overloaded")
    /// The items of a stream have ended: the peer has responded, or this side has ended them.
    public static let streamEnded = Code("streamEnded")
    /// The client, server, connection or exchange has ended; or a server was started a second time.
    public static let closed = Code("closed")
    /// An interceptor of this side has failed the call; `detail` states why.
    public static let intercepted = Code("intercepted")
    /// A configuration is invalid; `field` names the field, `detail` states why.
    public static let invalidConfiguration = Code("invalidConfiguration")

    /// All codes of this version.
    public static let allCases: [Code] = [
      .notConnected, .connectFailed, .securityFailed, .notAccepted, .connectionLost,
      .deadlineExceeded,
      .cancelled, .rejected,
      .corrupted, .protocolViolation, .tooLarge, .encodingFailed, .decodingFailed, .unsupported,
      .overloaded, .streamEnded, .closed, .intercepted, .invalidConfiguration,
    ]

    /// The code's name.
    public var description: String { name }
  }

  /// The operation that failed.
  package enum Operation: Hashable, Sendable {
    case request(MessageType, serial: UInt32? = nil)
    case push(MessageType)
    /// A request that no link carries, as text. `type` is the message type of its endpoint, if it
    /// has one.
    case exchange(String, type: MessageType?)
    /// The validation of a configuration's field.
    case check(String)
    /// Any other operation, as text.
    case other(String)
  }

  private struct Storage: Equatable {
    var code: Code
    var delivery: Delivery
    let operation: Operation
    var method = ""
    var detail: String
    let peer: SocketAddress?
    let response: ResponseCode?
    let dialectCode: UInt32?
    let body: [UInt8]
    let retryAfter: Duration?
    let systemError: Int32?
    let closeReason: CloseReason?
    let securityFailure: SecurityFailure?
    var itemsReceived: UInt64?
    var stream: StreamNumber
    var recording = Recorded(links: nil)
  }

  /// What the recorder had of the operation's links. Errors that differ only in it are equal.
  private struct Recorded: Equatable {
    let links: LinkRecording?

    static func == (_: Recorded, _: Recorded) -> Bool { true }
  }

  /// The number of the stream whose read or write failed; 0 for any other error. Errors that differ
  /// only in this number are equal, because it is not shown.
  private struct StreamNumber: Equatable {
    let value: UInt64

    static func == (_: StreamNumber, _: StreamNumber) -> Bool { true }
  }

  private let box: Box<Storage>
  private var storage: Storage { box.value }

  package init(
    _ code: Code,
    delivery: Delivery = .notSent,
    doing operation: LongLinkError.Operation,
    detail: String = "",
    peer: SocketAddress? = nil,
    response: ResponseCode? = nil,
    dialectCode: UInt32? = nil,
    body: [UInt8] = [],
    retryAfter: Duration? = nil,
    systemError: Int32? = nil,
    closeReason: CloseReason? = nil,
    securityFailure: SecurityFailure? = nil,
    stream: UInt64 = 0
  ) {
    box = Box(
      Storage(
        code: code, delivery: delivery, operation: operation, detail: detail, peer: peer,
        response: response, dialectCode: dialectCode, body: body, retryAfter: retryAfter,
        systemError: systemError, closeReason: closeReason, securityFailure: securityFailure,
        stream: StreamNumber(value: stream)))
  }

  private init(_ storage: Storage) {
    box = Box(storage)
  }

  /// Returns the error with some properties changed.
  private func changed(_ change: (inout Storage) -> Void) -> LongLinkError {
    var storage = storage
    change(&storage)
    return LongLinkError(storage)
  }

  /// The kind of failure.
  public var code: Code { storage.code }
  /// What may have happened to the request, over all of its attempts.
  public var delivery: Delivery { storage.delivery }
  /// The operation that failed, for an error that is derived from this one.
  package var doing: Operation { storage.operation }
  /// The operation as text, with the method, message type and serial of a request.
  public var operation: String { storage.operation.text(of: storage.method) }
  /// The full name of the method, such as `chat.Chat/Say`, whose request failed; nil for a request
  /// that was made with a message type alone.
  public var method: String? { storage.method.isEmpty ? nil : storage.method }
  /// The message type of the request or push that failed; nil for other operations.
  public var messageType: MessageType? { storage.operation.messageType }
  /// The serial of the request that failed, which the logs of both sides contain; nil if it had
  /// none.
  public var serial: UInt32? { storage.operation.serial }
  /// The configuration field that is invalid, such as `heartbeat.interval`; nil for other errors.
  public var field: String? { storage.operation.field }
  /// Details for people. Text from the peer is escaped and cut to 200 bytes; `body` has the whole.
  /// The body of an application's code is shown here if it is a text.
  public var detail: String { storage.detail }
  /// The peer of the operation, if known.
  public var peer: SocketAddress? { storage.peer }
  /// The code with which the peer rejected the request, or turned this side away; over HTTP, the
  /// status. Nil if there was none.
  public var response: ResponseCode? { storage.response }
  /// In a dialect, the number that stands for `response` on the wire; `detail` has its name and
  /// meaning. Nil in the native protocol.
  public var dialectCode: UInt32? { storage.dialectCode }
  /// The body of the peer's response: the application's from code 1000 on, otherwise a text for
  /// people. Empty if there was none.
  public var body: [UInt8] { storage.body }
  /// The retry delay for which the peer, or a proxy in its place, asked, unchanged and up to 49
  /// days; nil if none. The library itself waits at most `ReconnectPolicy.longestHint`.
  public var retryAfter: Duration? { storage.retryAfter }
  /// The system's `errno`, if a system call failed; else nil.
  public var systemError: Int32? { storage.systemError }
  /// Why the connection ended, if that failed the operation; else nil.
  public var closeReason: CloseReason? { storage.closeReason }
  /// Why the connection could not be secured, if that failed the operation; else nil.
  public var securityFailure: SecurityFailure? { storage.securityFailure }
  /// What the recorder of the loop has of the connections that the operation used, as the bytes of
  /// a file for `longlink replay` and Wireshark. It is made at each call, on any thread.
  ///
  /// Nil without the trait `Operations`, with a `recorderBytes` of 0, for failures other than lost
  /// connections, failed connects and deadlines, and if there was no connection. Besides the
  /// connection that failed, it has up to 8 that the client's requests have used before. Write it
  /// to a file before you drop the error: the error keeps some of the recorder's memory, at most
  /// `recorderBytes`.
  public var recording: [UInt8]? { storage.recording.links?.file }
  /// For a failed read of a stream, the number of items that were read before it; nil for other
  /// operations, and in a handler whose exchange has ended.
  public var itemsReceived: UInt64? { storage.itemsReceived }
}

extension LongLinkError {
  /// Returns the error with a delivery that also covers earlier attempts of the request. `refusal`
  /// says how the peer refused one of them.
  package func after(_ past: Delivery, _ refusal: String? = nil) -> LongLinkError {
    let whole = delivery.after(past)
    guard whole != delivery else { return self }
    let note =
      whole == .sent
      ? "an earlier sending may have run"
      : ["an earlier sending was refused", refusal].compactMap(\.self).joined(separator: " ")
    return changed { $0.delivery = whole }.noting(note)
  }

  /// Returns the error with a note after its detail; unchanged if the note is nil.
  package func noting(_ note: String?) -> LongLinkError {
    guard let note else { return self }
    return changed { $0.detail = $0.detail.isEmpty ? note : "\($0.detail); \(note)" }
  }

  /// Returns the error with the name of the method whose request failed.
  @usableFromInline package func of(_ method: MethodName) -> LongLinkError {
    let name = method.text
    return name.isEmpty ? self : changed { $0.method = name }
  }

  /// Returns the error with another code.
  package func with(_ code: Code) -> LongLinkError {
    changed { $0.code = code }
  }

  /// Whether a read or write of the stream with this number has failed.
  package func isOf(stream: UInt64) -> Bool { stream != 0 && storage.stream.value == stream }

  /// Returns the error with the final delivery of its request.
  package func with(delivery: Delivery) -> LongLinkError {
    changed { $0.delivery = delivery }
  }

  /// Returns the error with what the recorder has of the operation's links.
  package func with(_ recording: LinkRecording?) -> LongLinkError {
    guard let recording else { return self }
    return changed { $0.recording = Recorded(links: recording) }
  }

  /// Returns the error with the number of items that were read of its stream.
  package func with(itemsReceived: UInt64) -> LongLinkError {
    changed { $0.itemsReceived = itemsReceived }
  }
}

extension LongLinkError: CustomStringConvertible {
  /// The operation, the peer and the failure; for a request or push, also its delivery.
  public var description: String {
    var text = operation
    if let peer, !operation.contains("\(peer)") { text += " to \(peer)" }
    guard isExchange else { return "\(text): \(detail.isEmpty ? "\(code)" : detail)" }
    text += ": \(code)"
    if let response { text += " \(response)" }
    if !detail.isEmpty { text += " (\(detail))" }
    text += "; delivery: \(delivery.rawValue)"
    if let retryAfter { text += "; retry after \(retryAfter)" }
    if let itemsReceived { text += "; items received: \(itemsReceived)" }
    return text
  }

  /// Whether the operation is a request or push.
  private var isExchange: Bool {
    if case .exchange = doing { true } else { messageType != nil }
  }
}

extension LongLinkError: Equatable {
  /// Whether all properties are equal.
  public static func == (lhs: LongLinkError, rhs: LongLinkError) -> Bool {
    lhs.storage == rhs.storage
  }
}

extension LongLinkError {
  /// Returns the error of a request or push whose connection ended; `detail` replaces the text of
  /// the reason.
  package static func lost(
    _ reason: CloseReason, delivery: Delivery, doing operation: LongLinkError.Operation,
    peer: SocketAddress?, detail: String? = nil, securityFailure: SecurityFailure? = nil,
    retryAfter: Int64? = nil, ofShortLink isShort: Bool = false
  ) -> LongLinkError {
    let code: Code
    var systemError: Int32?
    switch reason {
    case .violation(let violation):
      code = violation.rule == .checksumMismatch ? .corrupted : .protocolViolation
    case .transport(let errno):
      code = .connectionLost
      systemError = errno
    case .closedHere:
      code = .closed
    // With TLS 1.3, a gateway's server may report this after a short link's request has begun to
    // leave.
    case .securityFailed(.clientCertificateRequired) where isShort,
      .securityFailed(.certificateRejected) where isShort:
      code = .securityFailed
    case .closedByPeer, .noResponse, .heartbeatLost, .handshakeTimeout, .stalledPeer,
      .unreadOutput, .memoryLimit, .cancelLimit, .handshakeEvicted, .securityFailed, .notAccepted,
      .goneAway, .left:
      code = .connectionLost
    }
    return LongLinkError(
      code, delivery: delivery, doing: operation, detail: detail ?? reason.detail, peer: peer,
      retryAfter: retryAfter.map { .nanoseconds($0) }, systemError: systemError,
      closeReason: reason, securityFailure: securityFailure)
  }

  /// Returns the error of an invalid configuration field.
  package static func configuration(_ field: String, _ detail: String) -> LongLinkError {
    LongLinkError(.invalidConfiguration, doing: .check(field), detail: detail)
  }
}
