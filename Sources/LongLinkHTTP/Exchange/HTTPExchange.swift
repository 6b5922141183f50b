// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkUploads
internal import NIOCore
internal import NIOHTTP1
internal import Synchronization

/// One request with all that belongs to it: redirects, challenges and retries, until a response
/// comes that is the application's.
final class HTTPExchange {
  /// The most bytes that are kept of the body of an error.
  static let errorBytes = 65_536
  /// How often a request is sent again because its connection had ended before it left.
  static let mostRetries = 2

  let core: ServiceCore
  let request: HTTPRequest
  var purpose: ExchangePurpose
  let meter: ExchangeMeter
  var extraFields = HTTPFields()
  /// Whether a compressed response is of use.
  var acceptsCompression: Bool
  // What redirects change.
  var address: HTTPAddress?
  var method: HTTPMethod
  var body = ReadyBody.none
  var isAtHome = true
  // What challenges change.
  var answered: String?
  var token: String?
  var challenges = 0
  /// Whether an empty request has shown that the server does not challenge.
  var hasProbed = false
  // How the last request failed: whether its head had left, and whether that was on a connection
  // which the server may have closed before.
  var hasLeft = false
  var wasStale = false
  /// What has happened to the requests so far.
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

  /// A response of the status 200 to 299, or 304 where it was asked for.
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

  /// Sends the request, and follows what the responses ask for.
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
          // The server asks for nothing: now with the body.
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
    return address
  }

  /// Drops the kept responses of URLs that a request may have changed: its own, and those that the
  /// response names, if they have the same origin.
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

  /// Whether an empty request goes first, since the body can be sent only once.
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

  /// The error of a response, with the beginning of its body.
  func rejection(_ opened: Opened, _ detail: String) async -> LongLinkError {
    let body = await errorBody(opened)
    // What stands between here and the server answers these; the server may be at work.
    let isOfServer = ![408, 502, 503, 504].contains(opened.status)
    let text = body.isEmpty ? detail : "\(detail): \(PeerText(utf8: body))"
    return purpose.failure(
      .rejected, delivery: isOfServer ? .answered : .sent, text, response: opened.status,
      body: body, retryAfter: opened.response.headers.retryAfter)
  }

  /// The beginning of a body that nobody waits for. The rest is dropped, with its connection.
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
      // What is there of it has to do.
    }
    return bytes
  }

  /// The server has accepted the credentials, and may say how it wants the next ones.
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

  /// Throws for an encoding that was not asked for, which nobody could read.
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
  /// How many seconds the sender asks to wait, at most 49 days; nil if it names none, or a date.
  var retryAfter: Duration? {
    first(name: "retry-after").flatMap { UInt32($0) }.map { .seconds(Swift.min($0, 4_233_600)) }
  }
}

extension HTTPExchange.Opened {
  /// The length of a body that is not compressed.
  var length: UInt64? {
    guard response.headers.first(name: "content-encoding") == nil else { return nil }
    return response.headers.first(name: "content-length").flatMap { UInt64($0) }
  }
}
#endif
