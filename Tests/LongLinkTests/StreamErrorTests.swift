// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTesting
import Testing

/// Errors of streams that are thrown on by others.
@Suite struct StreamErrorTests {
  /// What a byte that is not 1 does not decode as.
  private struct One: BodyEncodable & BodyDecodable, Sendable {
    var encodedByteCount: Int { 1 }

    func encode(into output: inout OutputRawSpan) { output.append(1) }

    init() {}

    init(decoding body: RawSpan) throws(BodyError) {
      let isOne = unsafe body.withUnsafeBytes { unsafe $0.elementsEqual([1]) }
      guard isOne else { throw BodyError(.malformed) }
    }
  }

  private static let ones = RPCMethod<Streamed<One>, One>(20)

  /// 20 fails by itself, or returns its error instead; 21 fails with the last error of 20.
  private static func routes(_ server: LongLinkServer, throwsOn: Bool) {
    let errors = Tally<LongLinkError>()
    server.routeStream(ones, itemTimeout: .seconds(1)) { _, items in
      do {
        for try await _ in items {}
      } catch let error as LongLinkError {
        errors.add(error)
        if throwsOn { throw error }
      }
      return One()
    }
    server.routeStream(21, .requestItems) { request, _, _ in
      guard let error = errors.elements.last else { return [] }
      #expect(error.serial == request.serial)
      throw error
    }
  }

  @Test(arguments: [LongLinkError.Code.deadlineExceeded, .decodingFailed], [true, false])
  func `a handler's error of another connection's stream is none of its own`(
    code: LongLinkError.Code, throwsOn: Bool
  ) async throws {
    try await Stage.simulate { stage, _ in
      let server = try await stage.serve { Self.routes($0, throwsOn: throwsOn) }
      let outcome = try? await stage.client(of: server).sendItems(20, []) { writer in
        if code == .decodingFailed { try await writer.write([2]) }
        try await stage.clientLoop.sleep(for: .seconds(5))
      }
      #expect((outcome == nil) == throwsOn)
      let other = try stage.client(of: server)
      let error = try await failure { try await other.sendItems(21, []) { _ in } }
      #expect(error.response == .failed && error.delivery == .answered)
      let counters = await server.counters().connections
      #expect(counters.handlersFailed == 1)
      #expect(counters.undecodable == (throwsOn && code == .decodingFailed ? 1 : 0))
    }
  }

  /// Where a handler reads the stream whose error it throws on.
  enum Source: CaseIterable {
    case thirdParty
    case requester
  }

  @Test(arguments: [LongLinkError.Code.deadlineExceeded, .decodingFailed], Source.allCases)
  func `a handler's error of a stream that it reads itself is none of its own`(
    code: LongLinkError.Code, source: Source
  ) async throws {
    let answers = RPCMethod<One, Streamed<One>>(30)
    // One item that is no one, if at all, and then silence.
    @Sendable func answer(_ request: InboundRequest, _ writer: ItemWriter<[UInt8]>) async throws
      -> [UInt8]
    {
      if code == .decodingFailed { try await writer.write([2]) }
      try await request.clock.sleep(for: .seconds(1_000_000))
      return []
    }
    try await Stage.simulate { stage, _ in
      let other = try await stage.serve { server in
        server.routeStream(answers.type, .responseItems) { try await answer($0, $2) }
      }
      let reader = try stage.client(of: other, on: stage.serverLoop)
      let server = try await stage.serve { server in
        server.routeStream(Self.ones, itemTimeout: .seconds(60)) { request, _ in
          let options = StreamOptions(itemTimeout: .seconds(1))
          let stream =
            source == .thirdParty
            ? reader.stream(answers, One(), options: options)
            : request.peer.stream(answers, One(), options: options)
          do {
            for try await _ in stream {}
          } catch let error as LongLinkError {
            #expect(error.code == code)
            #expect((error.serial == request.serial) == (source == .thirdParty))
            throw error
          }
          return One()
        }
      }
      let client = try stage.client(of: server)
      client.onStreamRequest(answers.type, .responseItems) { try await answer($0, $2) }
      let error = try await failure {
        try await client.sendItems(Self.ones) { writer in await writer.waitForEnd() }
      }
      #expect(error.response == .failed && error.delivery == .answered)
      let counters = await server.counters().connections
      #expect(counters.handlersFailed == 1 && counters.undecodable == 0)
    }
  }

  @Test func `the end of another stream is not taken for that of one's own`() async throws {
    try await Stage.serving { server in
      server.routeStream(22, .requestItems) { request, _, _ in request.body }
    } _: { _, _, client in
      var ended: LongLinkError?
      let caught = try await failure {
        try await client.sendItems(22, [1]) { writer in
          await writer.waitForEnd()
          _ = try await client.sendItems(22, [2]) { other in
            await other.waitForEnd()
            ended = try await failure { try await other.write([3]) }
          }
          if let ended { throw ended }
        }
      }
      #expect(caught.code == .streamEnded && caught == ended)
    }
  }
}
