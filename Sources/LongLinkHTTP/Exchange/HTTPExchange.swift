// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkUploads
internal import NIOCore
internal import NIOHTTP1
internal import Synchronization

/// One request with its redirects, challenges and retries, up to the response that the application
/// gets.
final class HTTPExchange {
  /// The most bytes of an error's body that are kept.
  static let errorBytes = 65_536
  /// How often a request is sent again because its connection ended before the request left.
  static let mostRetries = 2

  let core: ServiceCore
  let request: HTTPRequest
  var purpose: ExchangePurpose
  let meter: ExchangeMeter
  var extraFields = HTTPFields()
  /// Whether a compressed response is accepted.
  var acceptsCompression: Bool
  // State that redirects change. `isAtHome`: no redirect has led to another origin.
  var address: HTTPAddress?
  var method: HTTPMethod
  var body = ReadyBody.none
  var isAtHome = true
  // State that challenges change.
  var answered: String?
  var token: String?
  var challenges = 0
  /// Whether an empty request has shown that the server does not challenge.
  var hasProbed = false
  // How the last request failed: whether its head had left, and whether it left on an idle
  // connection, which the server may have closed before.
  var hasLeft = false
  var wasStale = false
  /// The delivery of the requests so far.
  var past = Delivery.notSent

  init(
    _ request: HTTPRequest, on core: ServiceCore, type: MessageType? = nil,
    timeout: Duration? = nil
  ) {
    self.core = core
    self.request = request
    method = request.method
    meter = ExchangeMeter(request.progress)
    acceptsCompression = request.acceptsCompression
    let timeout = timeout ?? request.timeout ?? core.configuration.timeout
    let address = try? HTTPAddress(request.url)
    purpose = ExchangePurpose(
      operation: "\(request.method.rawValue) \(address?.safeText ?? "a URL")", type: type,
      deadline: timeout.map { .now() + $0.timeAmount },
      idleTimeout: core.configuration.idleTimeout,
      connectTimeout: core.configuration.connectTimeout)
  }

  /// A response with the status 200 to 299, or 304 if the cache asked for it, whose body is not
  /// read yet.
  struct Opened {
    let response: HTTPClientResponse
    let body: ResponseBody
    let tail: ExchangeTail
    let address: HTTPAddress

    var status: Int { Int(response.status.code) }
  }

  func response() async throws(LongLinkError) -> HTTPResponse {
    let opened = try await open()
    guard (200..<300).contains(opened.status) else { throw unexpected(opened) }
    return HTTPResponse(
      status: opened.status, fields: HTTPFields(opened.response.headers),
      url: opened.address.text, length: opened.length,
      chunks: ChunkSource(opened.body, opened.tail).chunks)
  }

  private func unexpected(_ opened: Opened) -> LongLinkError {
    purpose.failure(
      .rejected, delivery: .answered, "HTTP \(opened.status), which was not asked for",
      response: opened.status)
  }

  /// Sends the request, follows redirects and answers challenges, until there is a response.
  func open() async throws(LongLinkError) -> Opened {
    var address = try prepareAddress()
    let place = try core.enter(purpose)
    do throws(UploadError) {
      body = try await request.body.prepare()
    } catch {
      throw purpose.failure(.encodingFailed, delivery: .notSent, "the body: \(error)")
    }
    var redirects = Redirects(
      from: address, method, limit: request.maxRedirects, cookies: cookies(for: address))
    while true {
      self.address = address
      let isProbe = needsProbe(address)
      let opened = try await send(to: address, isProbe ? .none : body, place)
      if (200..<400).contains(opened.status) { forgetKept(opened) }
      if opened.status == 401, try await answerChallenge(opened, isProbe: isProbe) { continue }
      switch opened.status {
      case 200..<300:
        if isProbe {
          // The server does not challenge: the request can go with its body.
          _ = await errorBody(opened)
          hasProbed = true
          continue
        }
        noteAccepted(opened)
        try checkEncoding(opened)
        return opened
      case 304 where extraFields["If-None-Match"] != nil: return opened
      case 300..<400:
        address = try await follow(opened, &redirects, isProbe: isProbe)
      default:
        throw await rejection(opened, "HTTP \(opened.status)\(unansweredChallenge(opened))")
      }
    }
  }

  private func prepareAddress() throws(LongLinkError) -> HTTPAddress {
    let address: HTTPAddress
    do throws(HTTPAddress.Problem) {
      address = try HTTPAddress(request.url)
    } catch {
      throw purpose.failure(
        .encodingFailed, delivery: .notSent,
        "the URL \"\(HTTPAddress.shown(request.url))\": \(error)")
    }
    for fields in [request.fields, request.secretFields, extraFields] {
      guard let field = fields.invalid else { continue }
      throw purpose.failure(
        .encodingFailed, delivery: .notSent,
        "the field \(PeerText(field.name)) has a character that no head can carry")
    }
    if let limit = request.maxResponseBytes, limit < 0 {
      throw purpose.failure(
        .encodingFailed, delivery: .notSent, "`maxResponseBytes` is \(limit), which is negative")
    }
    return address
  }

  /// Removes cached responses that a request may have changed: for its own URL, and for URLs that
  /// the response names, if they have the same origin.
  private func forgetKept(_ opened: Opened) {
    guard !method.isSafe, core.configuration.cacheBytes > 0 else { return }
    var changed = [opened.address]
    for name in ["location", "content-location"] {
      guard let text = opened.response.headers.first(name: name),
        let address = try? opened.address.resolving(text), address.origin == opened.address.origin
      else { continue }
      changed.append(address)
    }
    let urls = changed.map(\.withoutFragment)
    core.withCache { cache, _ in urls.forEach { cache.remove($0) } }
  }

  /// Whether an empty request goes first, because a challenge is expected and the body can be sent
  /// only once.
  private func needsProbe(_ address: HTTPAddress) -> Bool {
    guard !hasProbed, isAtHome, !body.isEmpty, !body.isReplayable,
      case .challenged(let credentials) = request.authentication?.kind
    else { return false }
    return credentials.mayBeChallenged(by: address.origin)
  }

  private func follow(
    _ opened: Opened, _ redirects: inout Redirects, isProbe: Bool
  ) async throws(LongLinkError) -> HTTPAddress {
    let redirect: Redirect
    do throws(Redirect.Refusal) {
      redirect = try redirects.follow(
        opened.status, to: opened.response.headers.first(name: "location"), from: opened.address,
        method, canSendBodyAgain: body.isReplayable || body.isEmpty || isProbe,
        cookies: cookies(for:))
    } catch {
      throw await rejection(opened, "HTTP \(opened.status): \(error)")
    }
    _ = await errorBody(opened)
    core.count(\.redirects)
    method = redirect.method
    if !redirect.keepsBody { body = .none }
    if redirect.crossesOrigins { isAtHome = false }
    answered = nil
    return redirect.address
  }

  /// Makes the error of a response, with the beginning of its body.
  func rejection(_ opened: Opened, _ detail: String) async -> LongLinkError {
    let body = await errorBody(opened)
    // Proxies answer with these statuses; the server may still be working on the request.
    let isOfServer = ![408, 502, 503, 504].contains(opened.status)
    let text = body.isEmpty ? detail : "\(detail): \(PeerText(utf8: body))"
    return purpose.failure(
      .rejected, delivery: isOfServer ? .answered : .sent, text, response: opened.status,
      body: body, retryAfter: opened.response.headers.retryAfter)
  }

  /// Reads the beginning of a body, at most `errorBytes`. The rest is dropped with its connection.
  func errorBody(_ opened: Opened) async -> [UInt8] {
    let flight = opened.tail.flight
    let loop = core.client.eventLoopGroup.any()
    let timer = loop.scheduleTask(in: core.configuration.idleTimeout.timeAmount) {
      flight.fail(.unwanted)
    }
    defer { timer.cancel() }
    var bytes: [UInt8] = []
    let reader = opened.body.reader()
    do {
      while bytes.count < HTTPExchange.errorBytes,
        let chunk = try await reader.next(isolation: #isolation)
      {
        bytes += chunk.prefix(HTTPExchange.errorBytes - bytes.count)
      }
    } catch {
      // The bytes that have arrived are used.
    }
    return bytes
  }

  /// Records that the server has accepted the credentials, and its nonce for the next request.
  private func noteAccepted(_ opened: Opened) {
    guard isAtHome else { return }
    switch request.authentication?.kind {
    case .bearer(let tokens): tokens.accepted(by: opened.address.origin)
    case .challenged(let credentials):
      guard let info = opened.response.headers.first(name: "authentication-info"),
        let nonce = Challenge.read(["digest \(info)"]).first?.parameters["nextnonce"]
      else { return }
      credentials.renew(nonce, of: opened.address.origin)
    case nil, .basic: break
    }
  }

  /// Throws if the body has an encoding that was not asked for.
  private func checkEncoding(_ opened: Opened) throws(LongLinkError) {
    let encoding = opened.body.encoding
    guard !ResponseBody.encodings.contains(encoding), method != .head, opened.status != 204,
      opened.response.headers.first(name: "content-length") != "0"
    else { return }
    throw purpose.failure(
      .protocolViolation, delivery: .sent,
      "the body has the encoding \(PeerText(encoding)), which was not asked for")
  }
}

extension HTTPHeaders {
  /// The seconds in `Retry-After`, at most 49 days; nil if it is missing or a date.
  var retryAfter: Duration? {
    first(name: "retry-after").flatMap { UInt32($0) }.map { .seconds(Swift.min($0, 4_233_600)) }
  }
}

extension HTTPExchange.Opened {
  /// The length of the body, if the head states it and the body is not compressed.
  var length: UInt64? {
    guard response.headers.first(name: "content-encoding") == nil else { return nil }
    return response.headers.first(name: "content-length").flatMap { UInt64($0) }
  }
}
#endif
