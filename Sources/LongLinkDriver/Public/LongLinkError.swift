// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkTransport

/// Why a request, a connect or a call failed, and what may have happened to what was sent.
///
/// `delivery` alone tells whether a retry is safe; no `code` does.
public struct LongLinkError: Error, Sendable {
  /// What went wrong; later versions may add codes.
  public struct Code: Hashable, Sendable, CaseIterable, CustomStringConvertible {
    private let name: String

    private init(_ name: String) {
      self.name = name
    }

    /// There is no connection, and the caller asked not to wait for one.
    public static let notConnected = Code("notConnected")
    /// The connect, or its handshake, came to nothing; `systemError` and `peer` tell more.
    public static let connectFailed = Code("connectFailed")
    /// The connection ended before the answer came; `closeReason` says why.
    public static let connectionLost = Code("connectionLost")
    /// The deadline passed before the answer came.
    public static let deadlineExceeded = Code("deadlineExceeded")
    /// The caller, or its task, cancelled.
    public static let cancelled = Code("cancelled")
    /// The peer answered with a code other than 200; `response` and `body` tell which.
    public static let rejected = Code("rejected")
    /// A frame failed its checksum; the connection was closed.
    public static let corrupted = Code("corrupted")
    /// One side broke a rule of the protocol; the connection was closed.
    public static let protocolViolation = Code("protocolViolation")
    /// The body is larger than the peer accepts.
    public static let tooLarge = Code("tooLarge")
    /// The message has no encoding.
    public static let encodingFailed = Code("encodingFailed")
    /// The reply arrived and is not the message that was expected.
    public static let decodingFailed = Code("decodingFailed")
    /// The dialect has no word for what was asked; `detail` says what is missing.
    public static let unsupported = Code("unsupported")
    /// More waits than the configuration allows; `detail` names the bound and what waits.
    public static let overloaded = Code("overloaded")
    /// The client, server or connection was closed.
    public static let closed = Code("closed")
    /// A configuration is wrong; `field` names what is, `detail` says why.
    public static let invalidConfiguration = Code("invalidConfiguration")

    /// All codes that this version has.
    public static let allCases: [Code] = [
      .notConnected, .connectFailed, .connectionLost, .deadlineExceeded, .cancelled, .rejected,
      .corrupted, .protocolViolation, .tooLarge, .encodingFailed, .decodingFailed, .unsupported,
      .overloaded, .closed, .invalidConfiguration,
    ]

    /// The code's name.
    public var description: String { name }
  }

  /// What was being done when it failed.
  package enum Operation: Hashable, Sendable {
    case request(MessageType, serial: UInt32? = nil)
    case push(MessageType)
    /// The check of a field of a configuration.
    case check(String)
    /// Anything else, in words.
    case other(String)
  }

  private struct Storage: Equatable {
    let code: Code
    let delivery: Delivery
    let operation: Operation
    let detail: String
    let peer: SocketAddress?
    let response: ResponseCode?
    let dialectCode: DialectErrorCode?
    let body: [UInt8]
    let retryAfter: Duration?
    let systemError: Int32?
    let closeReason: CloseReason?
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
    dialectCode: DialectErrorCode? = nil,
    body: [UInt8] = [],
    retryAfter: Duration? = nil,
    systemError: Int32? = nil,
    closeReason: CloseReason? = nil
  ) {
    box = Box(
      Storage(
        code: code, delivery: delivery, operation: operation, detail: detail, peer: peer,
        response: response, dialectCode: dialectCode, body: body, retryAfter: retryAfter,
        systemError: systemError, closeReason: closeReason))
  }

  /// What went wrong.
  public var code: Code { storage.code }
  /// What may have happened to the request, in all of its sendings together.
  public var delivery: Delivery { storage.delivery }
  /// What was being done, for an error that is made of this one.
  package var doing: Operation { storage.operation }
  /// What was being done, in words, with the message type and serial of a request.
  public var operation: String { storage.operation.description }
  /// The message type of the request or push that failed.
  public var messageType: MessageType? { storage.operation.messageType }
  /// The serial of the request that failed, by which the logs of both sides name it; nil where it
  /// had none.
  public var serial: UInt32? { storage.operation.serial }
  /// The field of a configuration that is wrong, such as `heartbeat.interval`.
  public var field: String? { storage.operation.field }
  /// More about it, for a person. What the peer said is cut to 200 bytes here and escaped; `body`
  /// has all of it.
  public var detail: String { storage.detail }
  /// The peer that it was being done to, where one is known.
  public var peer: SocketAddress? { storage.peer }
  /// The code of the peer's answer, when it rejected the request.
  public var response: ResponseCode? { storage.response }
  /// In a dialect, the number that stands for `response` on the wire, with its name and meaning.
  public var dialectCode: DialectErrorCode? { storage.dialectCode }
  /// The body of the peer's answer: its own from code 1000 on, else a text for people.
  public var body: [UInt8] { storage.body }
  /// How long the peer asks to wait before the next try, when it said so: as it was said, up to 49
  /// days. The library itself waits for no longer than `ReconnectPolicy.longestHint`.
  public var retryAfter: Duration? { storage.retryAfter }
  /// The system's `errno`, where a system call failed.
  public var systemError: Int32? { storage.systemError }
  /// Why the connection ended, where that is what failed the request.
  public var closeReason: CloseReason? { storage.closeReason }
}

extension LongLinkError: CustomStringConvertible {
  /// What was being done, to which peer, and what went wrong; of a request or push, also what may
  /// have happened to it.
  public var description: String {
    var text = operation
    if let peer, !operation.contains("\(peer)") { text += " to \(peer)" }
    guard isExchange else { return "\(text): \(detail.isEmpty ? "\(code)" : detail)" }
    text += ": \(code)"
    if let response { text += " \(response)" }
    if !detail.isEmpty { text += " (\(detail))" }
    text += "; delivery: \(delivery.rawValue)"
    if let retryAfter { text += "; retry after \(retryAfter)" }
    return text
  }

  /// Whether something was to be delivered to the peer.
  private var isExchange: Bool { messageType != nil }
}

extension LongLinkError: Equatable {
  /// Whether all that both tell is the same.
  public static func == (lhs: LongLinkError, rhs: LongLinkError) -> Bool {
    lhs.storage == rhs.storage
  }
}

extension LongLinkError {
  /// The error of a request whose connection ended.
  package static func lost(
    _ reason: CloseReason, delivery: Delivery, doing operation: LongLinkError.Operation,
    peer: SocketAddress?
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
    case .closedByPeer, .heartbeatLost, .handshakeTimeout, .stalledPeer, .unreadOutput,
      .memoryLimit, .goneAway, .left:
      code = .connectionLost
    }
    return LongLinkError(
      code, delivery: delivery, doing: operation, detail: reason.detail, peer: peer,
      systemError: systemError, closeReason: reason)
  }

  /// A configuration error that names its field.
  package static func configuration(_ field: String, _ detail: String) -> LongLinkError {
    LongLinkError(.invalidConfiguration, doing: .check(field), detail: detail)
  }
}
