// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCalls

/// The code of the documentation, so that it is compiled; `DocumentationTests` compares.
private enum DocumentedCode {
  static func begin(_ client: LongLinkClient) async throws {
    let price = RPCMethod<Article, Price>(20, "price", of: "shop", isReadOnly: true)

    let shop = CallService(
      policy: CallPolicy(RequestOptions(timeout: .seconds(5))), errors: [ShopError.self])
    let api = try CallClient(client, CallConfiguration(services: ["shop": shop]))
    let answer = try await api.call(price, Article(number: 7))
    print(answer)
  }

  static func policies(_ api: CallClient, _ price: RPCMethod<Article, Price>) async throws {
    let urgent = CallPolicy(RequestOptions(timeout: .seconds(1), priority: 10))
    let answer = try await api.call(price, Article(number: 7), policy: urgent)
    print(answer)
  }

  static func sharing(
    _ api: CallClient, _ price: RPCMethod<Article, Price>, _ now: UInt32
  ) async throws {
    let call = price(Article(number: 7, askedAt: now)).keyed(by: [7])
    let answer = try await api.value(of: call)
    print(answer)
  }

  static func interceptors(
    _ client: LongLinkClient, _ newTrace: @escaping @Sendable () -> String, _ quota: Quota
  ) throws {
    let traced: CallInterceptor = { request, next in
      var request = request
      request.options.metadata["traceparent"] = newTrace()
      return try await next(request)
    }
    let timed: CallInterceptor = { request, next in
      let start = request.clock.now
      defer { print(request.operation, start.duration(to: request.clock.now)) }
      return try await next(request)
    }
    let api = try CallClient(client, CallConfiguration(interceptors: [timed, traced]))
    print(api)

    enum Refusal: Error { case quotaUsedUp }

    let limited: CallInterceptor = { request, next in
      guard await quota.take(request.service) else { throw Refusal.quotaUsedUp }
      return try await next(request)
    }
    let retried: CallInterceptor = { request, next in
      do throws(LongLinkError) {
        return try await next(request)
      } catch {
        guard error.response == .draining, error.delivery.isSafeToRetry else { throw error }
        try await request.clock.sleep(for: error.retryAfter ?? .seconds(1))
        return try await next(request)
      }
    }
    print([limited, retried].count)
  }

  static func caching(_ client: LongLinkClient, _ price: RPCMethod<Article, Price>) async throws {
    var configuration = CallConfiguration()
    configuration.policies[price.type] = CallPolicy(
      cache: CachePolicy(fresh: .seconds(60), stale: .seconds(600), invalidatedBy: [21]))
    let api = try CallClient(client, configuration)

    api.invalidate(price(Article(number: 7)))
    api.invalidate(price)
    api.invalidateAll()
    let newest = try await api.call(
      price, Article(number: 7), policy: CallPolicy(reloads: true))
    print(newest)
  }

  static func groups(
    _ api: CallClient, _ price: RPCMethod<Article, Price>, _ stock: RPCMethod<Article, Stock>,
    _ articles: [Article]
  ) async throws {
    let group = api.group(
      articles.map { price($0) }, maxConcurrent: 8, mostFailures: 0)
    for await progress in group.progress() {
      print("\(progress.finished) of \(progress.total)")
    }
    let answers = try await group.values
    print(answers)

    let calls = [
      price(Article(number: 7)).map { Line.price($0) },
      stock(Article(number: 7)).map { Line.stock($0) },
    ]
    for result in await api.group(calls).results { print(result) }
  }

  static func paging(
    _ api: CallClient, _ search: RPCMethod<SearchRequest, SearchReply>
  ) async throws {
    let list = api.pages(from: Cursor.first, size: 20) { position, size in
      search(SearchRequest(after: position, limit: size)).map { reply in
        Page(reply.articles, next: reply.next)
      }
    }
    for try await article in list {
      print(article.number)
    }

    try await list.loadMore()
    let (shown, hasMore) = (await list.elements, await list.hasMore)
    print(shown, hasMore)
  }

  static func errors(
    _ api: CallClient, _ price: RPCMethod<Article, Price>, handle: (ShopError) -> Void
  ) async {
    do throws(CallError) {
      print(try await api.call(price, Article(number: 7)))
    } catch {
      if let error = error.application as? ShopError { handle(error) }
      print(error.code, error.text, error.delivery.isSafeToRetry)
    }
  }

  enum ShopError: ApplicationError {
    case soldOut

    init?(code: ResponseCode, body: [UInt8]) {
      guard code == 1000 else { return nil }
      self = .soldOut
    }

    func text(in language: String) -> String? {
      language == "zh-Hans" ? "已售罄。" : "This is sold out."
    }
  }

  static func texts(_ client: LongLinkClient) throws {
    var texts = ErrorTexts.english
    texts.texts[.deadlineExceeded] = "The shop does not answer."
    let api = try CallClient(client, CallConfiguration(texts: texts))
    print(api.configuration.texts.language)
  }

  static func otherTexts() -> ErrorTexts {
    let chinese = ErrorTexts(
      language: "zh-Hans",
      texts: [
        .notConnected: "没有网络连接，请稍后再试。",
        .connectFailed: "无法连接服务器，请检查网络后重试。",
        .connectionLost: "连接已断开。",
        .deadlineExceeded: "服务器没有及时回答。",
        .cancelled: "已取消。",
        .overloaded: "操作过多，请稍后再试。",
        CallErrorCode(.unauthenticated): "请先登录。",
        CallErrorCode(.forbidden): "没有权限。",
        CallErrorCode(.failed): "服务器出错了。",
      ],
      other: { code in "出错了（错误码 \(code)）。" },
      mayHaveRun: { text in "\(text)操作可能已经执行。" })
    return chinese
  }

  static func events(
    _ api: CallClient, _ price: RPCMethod<Article, Price>, show: (CallEvent) -> Void
  ) async throws {
    for await event in api.events(of: price.type) {
      print(event.isPush, try event.message(as: Price.self))
    }

    let events = api.events(of: 21, buffer: .close(100))
    do {
      for try await event in events { show(event) }
    } catch {
      print("too slow:", error.detail)
    }
  }

  static func polling(
    _ client: LongLinkClient, askOverHTTP: @escaping @Sendable () async -> Void
  ) async {
    var polling: Task<Void, any Error>?
    for await state in client.states() {
      if state.isConnected {
        polling?.cancel()
        polling = nil
      } else if polling == nil {
        polling = Task {
          while true {
            try await Task.sleep(for: .seconds(60))
            await askOverHTTP()
          }
        }
      }
    }
    polling?.cancel()
  }
}

// MARK: - What a shop says

/// A message of bytes that nobody looks into here.
private protocol Opaque: BodyEncodable, BodyDecodable, Sendable {
  init()
}

extension Opaque {
  var encodedByteCount: Int { 0 }
  func encode(into output: inout OutputRawSpan) {}
  init(decoding body: RawSpan) { self.init() }
}

private struct Article: Opaque {
  var number = 0
  var askedAt: UInt32 = 0
}

private struct Price: Opaque {}
private struct Stock: Opaque {}

private actor Quota {
  func take(_ service: String) -> Bool { !service.isEmpty }
}

private enum Line: Sendable {
  case price(Price)
  case stock(Stock)
}

private struct Cursor: Hashable, Sendable {
  static let first = Cursor()
}

private struct SearchRequest: Opaque {
  var after = Cursor.first
  var limit = 0
}

private struct SearchReply: Opaque {
  var articles: [Article] = []
  var next: Cursor?
}
