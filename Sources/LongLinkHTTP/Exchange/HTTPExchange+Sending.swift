// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport
internal import LongLinkUploads
internal import NIOCore
internal import NIOHTTP1
internal import Synchronization

extension HTTPExchange {
  /// Sends one request. Sends it again if its connection ends and a retry is safe.
  func send(
    to address: HTTPAddress, _ body: ReadyBody, _ place: ExchangePlace
  ) async throws(LongLinkError) -> Opened {
    guard request.retry != .once else {
      throw purpose.failure(
        .unsupported, delivery: .notSent, "no request over HTTP runs once")
    }
    var tries = 0
    while true {
      do throws(LongLinkError) {
        return try await sendOnce(to: address, body, place)
      } catch {
        guard mayRetry(error, body, tries) else { throw error }
        tries += 1
        core.count(\.retries)
      }
    }
  }

  private func mayRetry(
    _ error: LongLinkError, _ body: ReadyBody, _ tries: Int
  ) -> Bool {
    guard error.code == .connectionLost, request.retry != .never, !Task.isCancelled,
      core.isOpen
    else { return false }
    if !hasLeft { return tries < HTTPExchange.mostRetries }
    // An idle connection may have been closed by the server just as the request left.
    return tries == 0 && (request.retry.repeats || wasStale && method.isSafe)
      && (body.isReplayable || body.isEmpty)
  }

  private func sendOnce(
    to address: HTTPAddress, _ body: ReadyBody, _ place: ExchangePlace
  ) async throws(LongLinkError) -> Opened {
    let fields = try await fields(for: address, body)
    meter.begin(total: body.length)
    let flight = core.flights.add(deadline: purpose.deadline ?? .distantFuture) { [meter] in
      meter.sent($0)
    }
    defer { _ = core.flights.take(flight.number) }
    var message = HTTPClientRequest(url: address.withoutFragment)
    message.method = NIOHTTP1.HTTPMethod(rawValue: method.rawValue)
    message.headers = fields
    message.headers.replaceOrAdd(name: HTTPFlight.header, value: "\(flight.number)")
    let note = BrokenBody()
    switch body.source {
    case .none: break
    case .bytes(let bytes): message.body = .bytes(ByteBuffer(bytes: bytes))
    case .upload(let upload):
      message.body = .stream(
        BodyBuffers(upload: upload, flight: flight) { note.set($0) },
        length: body.length.map { .known(Int64(clamping: $0)) } ?? .unknown)
    }
    core.count(\.requests)
    do {
      let response = try await core.client.execute(
        message, deadline: purpose.deadline ?? .distantFuture)
      past = .sent
      core.configuration.cookies?.take(response.headers["set-cookie"], from: address)
      let opened = Opened(
        response: response,
        body: ResponseBody(response, flight, core.configuration.maxInflation),
        tail: ExchangeTail(purpose, flight, place, meter), address: address)
      meter.expect(opened.length)
      return opened
    } catch {
      // From now on the head is not sent any more, if it was not.
      flight.withdraw()
      let failure = purpose.failure(of: note.value ?? error, flight, past: past)
      // A parser's error means that an answer had begun.
      hasLeft = flight.isSent
      wasStale = flight.isStale && !(error is HTTPParserError)
      past = failure.delivery
      throw place.failure(failure, of: error)
    }
  }

  /// The header fields of the next request.
  private func fields(
    for address: HTTPAddress, _ body: ReadyBody
  ) async throws(LongLinkError) -> HTTPHeaders {
    var headers = HTTPHeaders()
    let isSameMethod = method == request.method
    for field in request.fields.fields {
      let name = field.name.lowercased()
      if !isAtHome, HTTPExchange.secret.contains(name) { continue }
      // These fields describe a body that is no longer sent.
      if !isSameMethod, name.hasPrefix("content-") { continue }
      headers.add(name: field.name, value: field.value)
    }
    if isAtHome {
      for field in request.secretFields.fields { headers.add(name: field.name, value: field.value) }
      if let authorization = try await authorization(for: address) {
        headers.replaceOrAdd(name: "Authorization", value: authorization)
      }
    }
    if let value = cookies(for: address) { headers.add(name: "Cookie", value: value) }
    for field in extraFields.fields {
      if !isAtHome, HTTPExchange.secret.contains(field.name.lowercased()) { continue }
      headers.replaceOrAdd(name: field.name, value: field.value)
    }
    if let type = body.contentType { headers.replaceOrAdd(name: "Content-Type", value: type) }
    for name in ["Host", "Content-Length", "Transfer-Encoding", "Connection"] {
      headers.remove(name: name)
    }
    headers.replaceOrAdd(
      name: "Accept-Encoding", value: acceptsCompression ? "gzip, deflate" : "identity")
    if !headers.contains(name: "Accept") { headers.add(name: "Accept", value: "*/*") }
    return headers
  }

  /// The value of `Cookie` from the jar for the next request; nil if there is none.
  func cookies(for address: HTTPAddress) -> String? {
    guard request.fields["Cookie"] == nil, request.secretFields["Cookie"] == nil else { return nil }
    return core.configuration.cookies?.field(for: address)
  }

  /// The fields that only the origin of the request's URL gets.
  private static let secret: Set<String> = [
    "authorization", "cookie", "origin", "proxy-authorization",
  ]

  /// The value of `Authorization` for the next request; nil for none.
  private func authorization(for address: HTTPAddress) async throws(LongLinkError) -> String? {
    switch request.authentication?.kind {
    case nil: return nil
    case .basic(let user, let password): return HTTPCredentials.basic(user, password)
    case .challenged(let credentials):
      answered = credentials.answer(method, address)
      return answered
    case .bearer(let tokens):
      let token = try await newToken(of: tokens, insteadOf: nil, for: address.origin)
      self.token = token
      return "Bearer \(token)"
    }
  }

  private func newToken(
    of tokens: HTTPBearerTokens, insteadOf rejected: String?, for origin: String
  ) async throws(LongLinkError) -> String {
    let token: String
    do {
      let loop = core.client.eventLoopGroup.any()
      token = try await tokens.token(
        insteadOf: rejected, for: origin,
        deadline: purpose.deadline.map { (at: $0, loop: loop) })
    } catch HTTPFailure.deadline {
      throw purpose.failure(
        .deadlineExceeded, delivery: past, "the deadline passed while it waited for a token")
    } catch is CancellationError {
      throw purpose.failure(.cancelled, delivery: past, "it waited for a token")
    } catch {
      throw purpose.failure(
        .rejected, delivery: rejected == nil ? past : .answered, "no token could be had: \(error)",
        response: 401)
    }
    guard token.utf8.allSatisfy({ 0x21..<0x7F ~= $0 }) else {
      throw purpose.failure(
        .encodingFailed, delivery: past, "the token has a character that no head can carry")
    }
    return token
  }

  /// Handles a 401. Returns whether the request can now be sent again with an answer.
  func answerChallenge(
    _ opened: Opened, isProbe: Bool
  ) async throws(LongLinkError) -> Bool {
    guard isAtHome, challenges < 3, body.isReplayable || body.isEmpty || isProbe
    else { return false }
    switch request.authentication?.kind {
    case .bearer(let tokens):
      let origin = opened.address.origin
      guard challenges == 0, body.isReplayable || body.isEmpty,
        tokens.pause(insteadOf: token, for: origin) == nil
      else { return false }
      challenges += 1
      _ = await errorBody(opened)
      _ = try await newToken(of: tokens, insteadOf: token, for: origin)
    case .challenged(let credentials):
      let fields = opened.response.headers["www-authenticate"]
      let isAccepted = credentials.accept(
        Challenge.read(fields), from: opened.address.origin, answered: answered)
      guard isAccepted else { return false }
      challenges += 1
      _ = await errorBody(opened)
    case nil, .basic: return false
    }
    core.count(\.challenges)
    return true
  }

  /// The text that says why the challenge of a 401 was not answered; empty if there is nothing to
  /// say.
  func unansweredChallenge(_ opened: Opened) -> String {
    guard opened.status == 401, isAtHome else { return "" }
    switch request.authentication?.kind {
    case .challenged(let credentials):
      let fields = opened.response.headers["www-authenticate"]
      return credentials.problem(Challenge.read(fields)).map { "; the server asks for \($0)" } ?? ""
    case .bearer(let tokens):
      return tokens.pause(insteadOf: token, for: opened.address.origin).map { "; \($0)" } ?? ""
    case nil, .basic: return ""
    }
  }
}

/// The error with which reading the request's body has failed, if it has.
private final class BrokenBody: Sendable {
  private let error = Mutex<UploadError?>(nil)

  var value: UploadError? { error.withLock(of: self) { $0 } }

  func set(_ value: UploadError) { error.withLock(of: self) { $0 = $0 ?? value } }
}
#endif
