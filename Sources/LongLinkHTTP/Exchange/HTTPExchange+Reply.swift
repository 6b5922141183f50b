// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import LongLinkDriver

extension HTTPExchange {
  /// Returns the response with its body in memory, from the server or from the cache.
  func reply() async throws(LongLinkError) -> HTTPReply {
    let sent = sentFields
    let url = cacheKey(sent)
    var kept: HTTPReply?
    if let url {
      switch core.withCache({ cache, now in cache.find(url, sent, at: now) }) {
      case .nothing: break
      case .fresh(let reply):
        core.count(\.cacheHits)
        return reply
      case .stale(let reply, let tag):
        kept = reply
        extraFields["If-None-Match"] = tag
      }
    }
    let opened = try await open()
    if opened.status == 304 {
      _ = await errorBody(opened)
      opened.tail.end()
      guard let url, let kept, let tag = extraFields["If-None-Match"],
        opened.address.withoutFragment == url
      else {
        throw purpose.failure(
          .rejected, delivery: .answered, "HTTP 304 of another URL", response: 304)
      }
      let fields = HTTPFields(opened.response.headers)
      let confirmed = core.withCache { cache, now in
        cache.refresh(url, fields, tag: tag, at: now, date: HTTPDate.now)
      }
      core.count(\.cacheHits)
      return confirmed ?? kept
    }
    let reply = try await read(opened)
    // A redirected response belongs to another URL, under which it is not kept either.
    if let url, opened.address.withoutFragment == url {
      core.withCache { cache, now in
        cache.store(reply, for: url, sent, at: now, date: HTTPDate.now)
      }
    }
    return reply
  }

  /// The header fields that the application and the call have set.
  private var sentFields: HTTPFields {
    var fields = request.fields
    for field in extraFields.fields { fields[field.name] = field.value }
    return fields
  }

  /// The URL under which the response is kept; nil if the cache may not be used.
  private func cacheKey(_ sent: HTTPFields) -> String? {
    guard request.usesCache, core.configuration.cacheBytes > 0,
      core.configuration.cookies == nil, request.method == .get,
      request.authentication == nil, request.secretFields.fields.isEmpty,
      case .none = request.body.source,
      ![
        "Authorization", "Cookie", "Proxy-Authorization", "Range", "If-None-Match",
        "If-Modified-Since",
      ].contains(where: {
        sent[$0] != nil
      }),
      let address = try? HTTPAddress(request.url)
    else { return nil }
    return address.withoutFragment
  }

  private func read(_ opened: Opened) async throws(LongLinkError) -> HTTPReply {
    let limit = request.maxResponseBytes ?? core.configuration.maxResponseBytes
    if let length = opened.length, length > UInt64(limit), method != .head {
      throw tooLarge(limit)
    }
    let reader = ChunkReader(opened.body.reader(), opened.tail)
    var body: [UInt8] = []
    while let chunk = try await reader.next(isolation: #isolation) {
      guard chunk.count <= limit - body.count else { throw tooLarge(limit) }
      body += chunk
    }
    return HTTPReply(
      status: opened.status, fields: HTTPFields(opened.response.headers),
      url: opened.address.text, body: body, isFromCache: false)
  }

  private func tooLarge(_ limit: Int) -> LongLinkError {
    purpose.failure(
      .tooLarge, delivery: .answered,
      "the response has more than \(limit) bytes; raise maxResponseBytes, or read it in chunks")
  }
}
#endif
