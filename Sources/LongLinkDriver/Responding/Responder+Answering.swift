// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import LongLinkCore

extension Responder {
  /// Responds with what a handler has returned.
  func answer<Body: BodyEncodable>(
    _ request: InboundRequest, _ body: Body, on link: Link
  ) {
    do throws(BodyError) {
      if Body.isMeasuredByEncoding {
        try write(try body.encodedBytes(), request, on: link)
      } else {
        try write(body, request, on: link)
      }
    } catch {
      link.log(
        .error, "A response could not be encoded",
        metadata(request.type, request.serial, ["error": "\(error)"]))
      send(request, on: link, .failed, text("the response could not be encoded", on: link))
    }
  }

  /// The metadata of a log line about a request, with the name of its method if that has one.
  func metadata(
    _ type: MessageType, _ serial: UInt32, _ others: Logger.Metadata
  ) -> Logger.Metadata {
    var metadata = others
    metadata["type"] = "\(type)"
    metadata["serial"] = "\(serial)"
    metadata["method"] = routes.names[type].map { "\($0)" }
    return metadata
  }

  private func write<Body: BodyEncodable>(
    _ body: Body, _ request: InboundRequest, on link: Link
  ) throws(BodyError) {
    let size = try body.encodedByteCount
    guard size <= link.connection.agreement.maxBody else {
      return refuse(size, request, on: link)
    }
    if !link.connection.framing.isNative { try link.connection.framing.validate(body) }
    let isSent = try link.respond(request.id, count: size, body)
    record?.respond(.ok, size, isSent: isSent, on: link)
  }

  /// Fails a request whose response is larger than the peer accepts.
  private func refuse(_ size: Int, _ request: InboundRequest, on link: Link) {
    let limit = link.connection.agreement.maxBody
    link.log(
      .error, "A response is larger than the peer accepts",
      metadata(request.type, request.serial, ["bytes": "\(size)"]))
    send(
      request, on: link, .failed, text("the response is larger than \(limit) bytes", on: link))
  }
}

/// The answer to a request whose handler has thrown an error.
struct HandlerRejection {
  let code: ResponseCode
  let body: [UInt8]
  let isRefused: Bool
  let dialectCode: UInt32?
  let retryAfter: Duration?

  init(
    _ code: ResponseCode, _ body: [UInt8], isRefused: Bool = false, dialectCode: UInt32? = nil,
    retryAfter: Duration? = nil
  ) {
    self.code = code
    self.body = body
    self.isRefused = isRefused
    self.dialectCode = dialectCode
    self.retryAfter = retryAfter
  }
}

// MARK: - Responses

extension Responder {
  func reject(
    _ request: InboundRequest, _ error: any Error, ofStream stream: UInt64 = 0, on link: Link
  ) {
    let rejection = rejection(of: request, error, ofStream: stream, on: link)
    peer.logRefusal(of: request, by: rejection, on: link)
    send(
      request.id, on: link, rejection.code, rejection.body, isRefused: rejection.isRefused,
      dialectCode: rejection.dialectCode, retryAfter: rejection.retryAfter)
  }

  /// How a request is answered whose handler has thrown an error.
  func rejection(
    of request: InboundRequest, _ error: any Error, ofStream stream: UInt64 = 0, on link: Link
  ) -> HandlerRejection {
    switch error {
    case let rejection as Rejection where rejection.code != .ok:
      return HandlerRejection(
        rejection.code, rejection.body, dialectCode: rejection.dialectCode,
        retryAfter: rejection.retryAfter)
    case let error as UndecodableRequest:
      return rejection(error.reason, on: link)
    case let error as BodyError:
      return HandlerRejection(.malformed, text("\(error)", on: link))
    case let error as LongLinkError
    where error.code == .deadlineExceeded && error.isOf(stream: stream):
      return HandlerRejection(.deadlinePassed, text(error.detail, on: link))
    case let error as LongLinkError
    where error.code == .decodingFailed && error.isOf(stream: stream):
      link.count { $0.undecodable += 1 }
      return HandlerRejection(.malformed, text(error.detail, on: link))
    case let error as LongLinkError where error.code == .overloaded && error.isOf(stream: stream):
      link.count { $0.refusedForMemory += 1 }
      return HandlerRejection(
        .overloaded, text(error.detail, on: link), retryAfter: Responder.pauseForMemory)
    case is CancellationError:
      return HandlerRejection(.cancelled, text("cancelled", on: link))
    case is HandlerSkipped:
      link.count { $0.handlersSkipped += 1 }
      return HandlerRejection(.cancelled, text("cancelled", on: link), isRefused: true)
    default:
      link.count { $0.handlersFailed += 1 }
      // The error's text may contain data that the peer must not see, so it is only logged. It may
      // also contain text from the peer, so it is escaped and cut.
      link.log(
        .error, "A handler failed",
        metadata(request.type, request.serial, ["error": "\(PeerText("\(error)"))"]))
      return HandlerRejection(.failed, text("the handler failed", on: link))
    }
  }

  /// The rejection of a request whose body does not decode, or needs too much memory. The client
  /// may retry it if there may be enough memory at another time.
  private func rejection(_ reason: BodyError, on link: Link) -> HandlerRejection {
    let code: ResponseCode
    switch reason.code {
    case .outOfMemory:
      link.count { $0.refusedForMemory += 1 }
      code = .overloaded
    case .tooLarge:
      link.count { $0.undecodable += 1 }
      code = .tooLarge
    default:
      link.count { $0.undecodable += 1 }
      code = .malformed
    }
    // `isRefused` tells the peer that the handler was not called.
    return HandlerRejection(
      code, text("\(reason)", on: link), isRefused: true,
      retryAfter: code == .overloaded ? Responder.pauseForMemory : nil)
  }

  func send(
    _ request: InboundRequest, on link: Link, _ code: ResponseCode, _ body: [UInt8],
    isRefused: Bool = false,
    dialectCode: UInt32? = nil, retryAfter: Duration? = nil
  ) {
    send(
      request.id, on: link, code, body, isRefused: isRefused, dialectCode: dialectCode,
      retryAfter: retryAfter)
  }

  /// Sends a response with a code, unless the request has ended.
  func send(
    _ id: InboundID, on link: Link, _ code: ResponseCode, _ body: [UInt8], isRefused: Bool = false,
    isInterrupting: Bool = false, dialectCode: UInt32? = nil, retryAfter: Duration? = nil
  ) {
    var metadata: MetadataBlock?
    if isInterrupting || retryAfter != nil, link.connection.agreement.features.contains(.metadata) {
      metadata = try? Metadata(
        retryAfter: retryAfter?.wireMilliseconds ?? 0, interrupted: isInterrupting
      ).encodedBlock()
    }
    var room = link.connection.agreement.maxBody
    if let block = metadata {
      room -= 2 + block.count
      if room < 0 { (metadata, room) = (nil, link.connection.agreement.maxBody) }
    }
    var body = body.count > room ? Array(body.prefix(room)) : body
    // Checked after it was cut, because a cut body may end with part of a delimiter.
    if (try? link.connection.framing.validate(body)) == nil { body = [] }
    let isSent = link.respond(
      id, code: code, isRefused: isRefused, isInterrupting: isInterrupting, ownCode: dialectCode,
      metadata: metadata, body)
    record?.respond(
      code, isRefused: isRefused, isInterrupting: isInterrupting, body.count, isSent: isSent,
      on: link)
  }

  /// The framework's text for the peer; empty in a dialect, which has no field for it.
  func text(_ text: String, on link: Link) -> [UInt8] {
    link.connection.framing.isNative ? Array(text.utf8) : []
  }

  /// Refuses a request that has arrived. `reason` is what the log says in place of `detail`.
  func refuse(
    _ arrival: Arrival, on link: Link, _ code: ResponseCode, _ detail: String,
    retryAfter: Duration? = nil, because reason: String? = nil
  ) {
    peer.logRefusal(of: arrival.type, arrival.serial, code, reason ?? detail, on: link)
    send(
      link.connection.id(of: arrival), on: link, code, text(detail, on: link), isRefused: true,
      retryAfter: retryAfter)
  }
}
