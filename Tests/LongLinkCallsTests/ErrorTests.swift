// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCalls
import LongLinkDriver
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

    func text(in language: String) -> String? {
      guard case .priceChanged(let price) = self else { return nil }
      return language == "de" ? "Es kostet jetzt \(price)." : "It costs \(price) now."
    }
  }

  private let method = RPCMethod<[UInt8], [UInt8]>(1, of: "shop")
  private let services = ["shop": CallService(errors: [ShopError.self])]

  @Test func `codes from 1000 on become the application's own errors`() async throws {
    var texts = ErrorTexts.english
    texts.texts[CallErrorCode(rawValue: 1_000)] = "Sold out."
    try await Scene.run(CallConfiguration(services: services, texts: texts)) { scene async throws in
      scene.server.on(
        1,
        [
          .reply(code: 1_000), .reply(code: 1_001, body: [42]), .reply(code: 1_001),
          .reply(code: 500), .refuse(1_000),
        ])
      var errors: [CallError] = []
      for _ in 0..<5 {
        errors.append(try await failure { try await scene.api.call(method, []) })
      }
      #expect(
        errors.map { $0.application as? ShopError }
          == [.soldOut, .priceChanged(to: 42), nil, nil, .soldOut])
      #expect(errors.map(\.code.rawValue) == [1_000, 1_001, 1_001, 500, 1_000])
      #expect(errors[0].text == "Sold out.")
      #expect(errors[1].text == "It costs 42 now.")
      #expect(errors[2].text == "Something went wrong (error 1001).")
      #expect(errors.map(\.delivery) == [.answered, .answered, .answered, .answered, .refused])
    }
  }

  @Test func `a peer's code is never taken for a failure of this side`() async throws {
    let codes: [ResponseCode] = [7, 99, 299, 300, 399, 400, 599, 600, 999, 1_000]
    try await Scene.run { scene async throws in
      scene.server.on(1, codes.map { .reply(code: $0) })
      var found: [UInt32] = []
      for _ in codes {
        found.append(try await failure { try await scene.api.call(method, []) }.code.rawValue)
      }
      #expect(found == [99, 99, 99, 300, 399, 400, 599, 99, 99, 1_000])
    }
  }

  @Test func `each code of the link has a number and a text of its own`() {
    let codes = LongLinkError.Code.allCases.filter { $0 != .rejected }
    let errors = codes.map { CallError(LongLinkError($0, doing: "test")) }
    #expect(errors.map(\.code.rawValue).sorted() == Array(1...18))
    #expect(Set(errors.map(\.text)).count == 18)
    #expect(
      errors.allSatisfy { !$0.text.contains("went wrong") && !$0.text.contains("link") })
  }

  @Test func `a cancelled call is a cancellation, and no other failure is`() {
    for code in LongLinkError.Code.allCases {
      let error: any Error = CallError(LongLinkError(code, doing: "test"))
      #expect(error.isCancellation == (code == .cancelled))
    }
  }

  @Test(arguments: [400, 401, 403, 404, 408, 409, 413, 429, 499, 500, 503] as [UInt32])
  func `each code of the protocol has a text`(_ code: UInt32) {
    let error = CallError(
      LongLinkError(
        .rejected, delivery: .answered, doing: "test", response: ResponseCode(rawValue: code)))
    #expect(error.code.rawValue == code)
    #expect(!error.text.contains("error \(code)"))
  }

  @Test func `the text for users states that the request may have run`() {
    let lost = CallError(LongLinkError(.connectionLost, delivery: .sent, doing: "test"))
    #expect(lost.text == "The connection was lost. It is not known whether it was done.")
    let notSent = CallError(LongLinkError(.connectionLost, doing: "test"))
    #expect(notSent.text == "The connection was lost.")
  }

  @Test func `another table gives texts in another language`() async throws {
    let german = ErrorTexts(
      language: "de", texts: [.deadlineExceeded: "Der Server antwortet nicht."],
      other: { "Fehler \($0)." },
      mayHaveRun: { "\($0.dropLast()): Ob es getan wurde, ist nicht bekannt." })
    try await Scene.run(CallConfiguration(services: services, texts: german)) { scene in
      scene.server.on(1, [.never, .reply(code: 1_001, body: [7]), .reply(code: 1_000)])
      let error = try await failure { try await scene.api.call(method, []) }
      #expect(error.text == "Der Server antwortet nicht: Ob es getan wurde, ist nicht bekannt.")
      #expect("\(error)".hasPrefix("4: Der Server"))
      let changed = try await failure { try await scene.api.call(method, []) }
      #expect(changed.text == "Es kostet jetzt 7.")
      let soldOut = try await failure { try await scene.api.call(method, []) }
      #expect(soldOut.application as? ShopError == .soldOut && soldOut.text == "Fehler 1000.")
      let other = try await failure { try await scene.api.call(.raw(9), []) }
      #expect(other.text == "Fehler 404.")
    }
  }
}
