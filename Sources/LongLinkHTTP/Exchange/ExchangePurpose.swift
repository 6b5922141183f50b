// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkUploads
internal import NIOCore
internal import NIOHTTP1

/// The description and the time limits of an exchange, from which its errors are made.
struct ExchangePurpose: Sendable {
  /// The operation as text, such as `GET https://example.com/nodes`.
  var operation: String
  /// The message type of the endpoint; nil for a request without an endpoint.
  var type: MessageType?
  var deadline: NIODeadline?
  var idleTimeout: Duration
  var connectTimeout: Duration

  func failure(
    _ code: LongLinkError.Code, delivery: Delivery, _ detail: String, response: Int? = nil,
    body: [UInt8] = [], retryAfter: Duration? = nil, systemError: Int32? = nil,
    securityFailure: SecurityFailure? = nil
  ) -> LongLinkError {
    LongLinkError(
      code, delivery: delivery, doing: .exchange(operation, type: type), detail: detail,
      response: response.map { ResponseCode(wire: UInt32($0)) }, body: body,
      retryAfter: retryAfter, systemError: systemError, securityFailure: securityFailure)
  }

  /// Makes the error of a failed flight. `past` is the delivery of the flights before it.
  func failure(
    of error: any Error, _ flight: HTTPFlight?, past: Delivery
  ) -> LongLinkError {
    let isSent = flight?.isSent == true
    let delivery = (isSent ? Delivery.sent : .notSent).after(past)
    if let failure = flight?.failure ?? error as? HTTPFailure {
      let (code, detail) = describe(failure)
      return self.failure(code, delivery: delivery, detail)
    }
    if let error = error as? UploadError {
      return failure(.encodingFailed, delivery: delivery, "the body: \(error)")
    }
    if let security = SecurityCause.failure(of: error) {
      return self.failure(security, isSent: isSent, delivery)
    }
    if !isSent, let deadline, NIODeadline.now() >= deadline {
      return failure(.deadlineExceeded, delivery: delivery, "the deadline passed")
    }
    return failure(
      code(of: error, isSent: isSent), delivery: delivery,
      CauseText.of(error, connectTimeout: connectTimeout),
      systemError: CauseText.system(error)?.errnoCode)
  }

  /// Makes the error of a TLS failure. Once a request has left, it is `connectionLost`, unless the
  /// server has rejected this side's certificate, which it can do so late.
  private func failure(
    _ security: SecurityFailure, isSent: Bool, _ delivery: Delivery
  ) -> LongLinkError {
    let isLoss = isSent && !security.code.isAboutThisSide
    return failure(
      isLoss ? .connectionLost : .securityFailed, delivery: delivery, security.detail,
      securityFailure: security)
  }

  private func describe(_ failure: HTTPFailure) -> (LongLinkError.Code, String) {
    switch failure {
    case .silence: (.deadlineExceeded, "the server was silent for \(idleTimeout)")
    case .deadline: (.deadlineExceeded, "the deadline passed")
    case .headTooLarge:
      (
        .protocolViolation,
        "the response's head has more than \(HTTPGuard.headBytes) bytes"
          + " or \(HTTPGuard.headFields) fields"
      )
    case .tooManyInterim:
      (.protocolViolation, "more than \(HTTPGuard.interimHeads) interim responses")
    case .unwanted: (.cancelled, "the rest was not wanted")
    case .endedEarly: (.connectionLost, "the response ended before the request")
    case .damaged: (.corrupted, "the compressed body is damaged")
    case .inflated(let most): (.corrupted, Inflater.problem(most))
    case .truncated: (.connectionLost, "the compressed body lacks its end")
    case .unusable(let count):
      (.connectFailed, "the server opened \(count) connections, and took no request on them")
    }
  }

  private func code(of error: any Error, isSent: Bool) -> LongLinkError.Code {
    switch error {
    case is CancellationError: return .cancelled
    // The connection ended just before the request was sent on it.
    case let error as ChannelError where error == .ioOnClosedChannel || error == .alreadyClosed:
      return .connectionLost
    case let error as HTTPClientError: return code(of: error)
    case let error as HTTPParserError:
      return error == .invalidEOFState ? .connectionLost : .protocolViolation
    default: break
    }
    // HTTP/2 has many error types, which are told apart by name.
    let type = String(reflecting: Swift.type(of: error))
    if type.contains("NIOHTTP2") {
      return ["ContentLength", "Header", "Pseudo", "Invalid"].contains { type.contains($0) }
        ? .protocolViolation : .connectionLost
    }
    return isSent ? .connectionLost : .connectFailed
  }

  private func code(of error: HTTPClientError) -> LongLinkError.Code {
    switch error {
    // If this task was not cancelled, the connection has ended.
    case .cancelled, .requestStreamCancelled: Task.isCancelled ? .cancelled : .connectionLost
    case .alreadyShutdown: .closed
    case .deadlineExceeded, .readTimeout, .writeTimeout: .deadlineExceeded
    case .remoteConnectionClosed: .connectionLost
    case .connectTimeout, .getConnectionFromPoolTimeout, .tlsHandshakeTimeout,
      .socksHandshakeTimeout, .httpProxyHandshakeTimeout, .proxyAuthenticationRequired,
      .invalidProxyResponse:
      .connectFailed
    case .uncleanShutdown: .protocolViolation
    default: .encodingFailed
    }
  }
}
#endif
