import LongLink
import LongLinkAPI
import LongLinkConnection
import LongLinkTesting
import Testing

/// Failures as programs and as people know them.
@Suite struct ErrorTests {
  enum ShopError: ApplicationError, Equatable {
    case soldOut
    case priceChanged(to: UInt8)

    init?(code: ResponseCode, body: [UInt8]) {
      switch (code, body.first) {
      case (1_000, _): self = .soldOut
      case (1_001, let price?): self = .priceChanged(to: price)
      default: return nil
      }
    }

    var text: String? {
      if case .priceChanged(let price) = self { "It costs \(price) now." } else { nil }
    }
  }

  private let method = APIMethod<[UInt8], [UInt8]>(
    1, returning: [UInt8].self, of: APIService(errors: [ShopError.self]))

  @Test func `codes from 1000 on become the application's own errors`() async throws {
    var texts = ErrorTexts.english
    texts.texts[ErrorCode(rawValue: 1_000)] = "Sold out."
    try await Scene.run(APIConfiguration(texts: texts)) { scene async throws in
      scene.server.on(
        1,
        [
          .reply(code: 1_000), .reply(code: 1_001, body: [42]), .reply(code: 1_001),
          .reply(code: 500), .refuse(1_000),
        ])
      var errors: [APIError] = []
      for _ in 0..<5 {
        errors.append(try await failure { try await scene.api.call(method, []) })
      }
      #expect(
        errors.map { $0.application as? ShopError }
          == [.soldOut, .priceChanged(to: 42), nil, nil, .soldOut])
      #expect(errors.map(\.code.rawValue) == [1_000, 1_001, 1_001, 500, 1_000])
      #expect(errors[0].text == "Sold out.")
      #expect(errors[1].text == "It costs 42 now.")
      #expect(errors[2].text == ErrorTexts.english.other)
      #expect(errors.map(\.delivery) == [.answered, .answered, .answered, .answered, .refused])
    }
  }

  @Test func `each code of the link has a number and a text of its own`() {
    let codes: [LongLinkError.Code] = [
      .notConnected, .connectFailed, .connectionLost, .deadlineExceeded, .cancelled, .corrupted,
      .protocolViolation, .tooLarge, .encodingFailed, .decodingFailed, .overloaded, .closed,
      .invalidConfiguration,
    ]
    let errors = codes.map { APIError(LongLinkError($0, doing: "test")) }
    #expect(errors.map(\.code.rawValue) == Array(1...13))
    #expect(Set(errors.map(\.text)).count == 13)
    #expect(errors.allSatisfy { $0.text != ErrorTexts.english.other && !$0.text.contains("link") })
  }

  @Test(arguments: [400, 401, 403, 404, 408, 409, 413, 429, 499, 500, 503] as [UInt32])
  func `each code of the protocol has a text`(_ code: UInt32) {
    let error = APIError(
      LongLinkError(
        .rejected, delivery: .answered, doing: "test", response: ResponseCode(rawValue: code)))
    #expect(error.code.rawValue == code)
    #expect(error.text != ErrorTexts.english.other)
  }

  @Test func `people are told when something may have been done`() {
    let texts = ErrorTexts.english
    let lost = APIError(LongLinkError(.connectionLost, delivery: .sent, doing: "test"))
    #expect(lost.text == "The connection was lost. \(texts.mayHaveRun)")
    let notSent = APIError(LongLinkError(.connectionLost, doing: "test"))
    #expect(notSent.text == "The connection was lost.")
  }

  @Test func `another table speaks another language`() async throws {
    let german = ErrorTexts(
      texts: [.deadlineExceeded: "Der Server antwortet nicht."], other: "Etwas ging schief.",
      mayHaveRun: "Ob es getan wurde, ist nicht bekannt.")
    try await Scene.run(APIConfiguration(texts: german)) { scene in
      scene.server.on(1, .never)
      let error = try await failure { try await scene.api.call(method, []) }
      #expect(error.text == "Der Server antwortet nicht. Ob es getan wurde, ist nicht bekannt.")
      #expect("\(error)".hasPrefix("4: Der Server"))
      let other = try await failure { try await scene.api.call(.raw(9), []) }
      #expect(other.text == "Etwas ging schief.")
    }
  }
}
