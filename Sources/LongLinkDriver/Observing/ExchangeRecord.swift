// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import LongLinkTransport
internal import Synchronization

/// How an exchange ended.
package enum ExchangeEnding: Equatable, Sendable {
  /// The handler responded, with code 200 or that of its rejection.
  case answered(ResponseCode)
  /// The request was refused with this code: its handler certainly did not run.
  case refused(ResponseCode)
  /// The framework responded with this code instead of the handler, which may still run.
  case interrupted(ResponseCode)
  /// The caller cancelled the request.
  case cancelled
  /// The caller's deadline passed before a response came.
  case expired
  /// The link ended, for this reason.
  case lost(CloseReason)
  /// This side could not send the request, or the response.
  case failed(LongLinkError.Code)
}

/// What one side knows of one exchange: a request, its items and its response.
///
/// Only a client or server with observers makes records. The loop changes a record. `begins` and
/// `withScope`, which are called elsewhere, may use its constants and attachments only.
package final class ExchangeRecord: @unchecked Sendable {
  /// Which side made the request.
  package enum Direction: Hashable, Sendable {
    /// This side, which waits for the response.
    case outbound
    /// The peer, for which a handler of this side runs.
    case inbound
  }

  package let direction: Direction
  package let type: MessageType
  /// The full name of the method: that of the route for a request of the peer, and that which the
  /// caller gives for one of this side. Nil if it has none.
  package let method: String?
  /// Whether the request carries items; false if it was refused before it arrived.
  package let isStream: Bool
  /// When the request was made, or arrived.
  package let began: LinkInstant
  private let loop: EventLoop
  private let observers: Observers
  private let attachments = Mutex<[ObjectIdentifier: any Sendable]>([:])
  /// The metadata of a request of this side, including what observers have added.
  private(set) var metadata: [String: String] = [:]
  /// Why an interceptor has refused a request of this side; nil if none has.
  private(set) var refusal: LongLinkError?
  /// The interceptors' functions for the end of the exchange, that of the last one first.
  private var ends: [InterceptedRequest.End] = []

  /// The serial on the wire; 0 before the first attempt.
  package private(set) var serial: UInt32 = 0
  /// The last link that has carried the request; nil if none has.
  package private(set) var link: LinkRecord?
  /// When a link took the request's last attempt, or the handler was about to get the request; nil
  /// if neither happened.
  package private(set) var handedOver: LinkInstant?
  /// How often a link has taken the request; 1 for a request of the peer.
  package private(set) var attempts = 0
  /// The bytes of the request's body, without metadata and items; 0 before its first attempt, and
  /// if it was refused before it arrived.
  package private(set) var requestBytes = 0
  /// The bytes of the response's body, without items; 0 if there was none.
  package private(set) var responseBytes = 0
  /// When the exchange ended; nil while it goes on.
  package private(set) var ended: LinkInstant?
  /// How the exchange ended; nil while it goes on.
  package private(set) var ending: ExchangeEnding?
  /// What may have happened to the request, over all attempts. Valid once the exchange has ended.
  package private(set) var delivery = Delivery.notSent
  /// The error that the caller gets; nil for a success, and for a request of the peer.
  package private(set) var error: LongLinkError?

  private init(
    _ direction: Direction, _ type: MessageType, _ method: String? = nil, isStream: Bool,
    on loop: EventLoop, _ observers: Observers
  ) {
    self.direction = direction
    self.type = type
    self.method = method
    self.isStream = isStream
    self.loop = loop
    self.observers = observers
    // This is the current time, because the request of another thread may be later than the turn's
    // time.
    began = loop.driver.now
  }

  /// Notes that a link has taken the request, or that its handler gets it, with `count` bytes of
  /// body.
  func handedOver(_ serial: UInt32, _ count: Int, on link: Link) {
    self.serial = serial
    self.link = link.record
    requestBytes = count
    handedOver = loop.driver.now
    attempts += 1
    for observer in observers.all { observer.handedOver(self) }
  }

  /// Ends the record, once.
  func end(_ ending: ExchangeEnding, _ delivery: Delivery, bytes: Int = 0) {
    guard ended == nil else { return }
    ended = loop.driver.now
    self.ending = ending
    self.delivery = delivery
    responseBytes = bytes
    for observer in observers.all { observer.ended(self) }
    guard !ends.isEmpty else { return }
    let time = Duration.nanoseconds(loop.driver.now - began)
    for function in ends { function(error, time) }
    ends = []
  }

  /// Keeps a value of an observer, replacing its earlier value of the same type. On any thread.
  package func attach<Value: Sendable>(_ value: Value) {
    attachments.withLock { $0[ObjectIdentifier(Value.self)] = value }
  }

  /// The value of this type that an observer has attached; nil if there is none. On any thread.
  package func attachment<Value: Sendable>(of type: Value.Type) -> Value? {
    attachments.withLock { $0[ObjectIdentifier(type)] as? Value }
  }
}

// MARK: - Requests of this side

extension RequestPort {
  /// Begins the record of a request of this side; nil without observers. Interceptors may change
  /// `options`.
  func record(
    _ type: MessageType, _ method: MethodName, isStream: Bool = false,
    _ options: inout RequestOptions
  ) -> ExchangeRecord? {
    guard let observers else { return nil }
    return ExchangeRecord(type, method, isStream: isStream, &options, on: loop, observers)
  }
}

extension ExchangeRecord {
  convenience init(
    _ type: MessageType, _ method: MethodName, isStream: Bool, _ options: inout RequestOptions,
    on loop: EventLoop, _ observers: Observers
  ) {
    let name = method.text
    self.init(
      .outbound, type, name.isEmpty ? nil : name, isStream: isStream, on: loop, observers)
    if !observers.interceptors.isEmpty {
      var request = InterceptedRequest(type, method, isStream: isStream, options)
      do {
        for interceptor in observers.interceptors { try interceptor(&request) }
      } catch {
        refusal = LongLinkError(refusing: type, error).covering(request.options.ticket)
      }
      options = request.options
      ends = request.ends.reversed()
    }
    metadata = options.metadata
    for observer in observers.all { observer.begins(self, metadata: &metadata) }
  }

  /// Ends the record with the result that the caller gets.
  func end(_ outcome: Outcome) {
    switch outcome {
    case .success(let body):
      end(.answered(.ok), .answered, bytes: body.count)
    case .failure(let error):
      self.error = error
      let ending =
        attempts > 0 ? error.closeReason.map { ExchangeEnding.lost($0) } : nil
      end(ExchangeEnding(error) ?? ending ?? .failed(error.code), error.delivery)
    }
  }

  /// Ends the record with a response other than a success. `error.delivery` covers all attempts.
  func end(_ error: LongLinkError, isRefused: Bool, isInterrupted: Bool) {
    self.error = error
    let code = error.response ?? .deadlinePassed
    end(
      isRefused ? .refused(code) : isInterrupted ? .interrupted(code) : .answered(code),
      error.delivery, bytes: error.body.count)
  }
}

extension ExchangeEnding {
  /// How a request without a response ended, if its error alone tells; nil if attempts matter too.
  fileprivate init?(_ error: LongLinkError) {
    switch error.code {
    // The server has left without accepting the request.
    case .rejected: self = .refused(error.response ?? .draining)
    case .cancelled: self = .cancelled
    case .deadlineExceeded: self = .expired
    default: return nil
    }
  }
}

// MARK: - Requests of the peer

extension ExchangeRecord {
  /// Begins the record of a request of the peer that has arrived.
  convenience init(
    _ type: MessageType, of method: String?, _ serial: UInt32, _ count: Int, isStream: Bool,
    _ metadata: ReceivedMetadata?, on link: Link, _ observers: Observers
  ) {
    self.init(.inbound, type, method, isStream: isStream, on: link.loop, observers)
    self.serial = serial
    self.link = link.record
    requestBytes = count
    let entries = metadata?.entries ?? [:]
    for observer in observers.all { observer.arrived(self, metadata: entries) }
  }

  /// Ends the record of a peer's request with the response that the responder has made. `isSent` is
  /// whether the link sends it, and `count` the bytes of its body.
  func respond(
    _ code: ResponseCode, isRefused: Bool = false, isInterrupting: Bool = false, _ count: Int,
    isSent: Bool, on link: Link
  ) {
    let delivery: Delivery = isRefused ? .refused : isSent && !isInterrupting ? .answered : .sent
    if !isSent {
      let isInexpressible = !link.connection.framing.isNative && link.isLive
      end(
        link.connection.phase.endReason.map { .lost($0) }
          ?? (isInexpressible ? .failed(.unsupported) : .cancelled),
        delivery)
    } else if isRefused {
      end(.refused(code), delivery, bytes: count)
    } else if isInterrupting {
      end(.interrupted(code), delivery, bytes: count)
    } else {
      end(.answered(code), delivery, bytes: count)
    }
  }
}
