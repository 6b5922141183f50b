// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDialects
import LongLinkTestSupport
import Testing

@Suite struct FrameDialectTests {
  typealias Ping = FrameDialect.Ping

  /// A dialect of which parts can be exchanged.
  private struct Parts {
    var request: [FrameLayout.Field] = [.type(2), .serial(4), .length(2)]
    var response: [FrameLayout.Field] = [.type(2), .serial(4), .code(1), .length(2)]
    var delimiter: FrameLayout.Delimiter?
    var client: ClosedRange<UInt32> = 1...1000
    var server: ClosedRange<UInt32>?
    var responseType = FrameDialect.ResponseType.echo
    var heartbeat = FrameDialect.HeartbeatFrames()
    var pushes = FrameDialect.Pushes()
    var cancel: FrameDialect.Cancel?
    var codes: FrameDialect.Codes? = FrameDialect.Codes(success: [0], failure: 1)
    var unknownSerial = FrameDialect.UnknownSerial.drop
    var maximumBody = 1000

    func dialect() throws(FrameLayoutError) -> FrameDialect {
      let layout = try FrameLayout(
        request: FrameLayout.Shape(header: request),
        response: FrameLayout.Shape(header: response), delimiter: delimiter)
      return try FrameDialect(
        layout: layout, serials: FrameDialect.Serials(client: client, server: server),
        responseType: responseType, heartbeat: heartbeat, pushes: pushes, cancel: cancel,
        codes: codes, unknownSerial: unknownSerial, maximumBody: maximumBody)
    }
  }

  private func expect(_ start: String, line: Int = #line, _ change: (inout Parts) -> Void) {
    var parts = Parts()
    change(&parts)
    var found = "nothing"
    do throws(FrameLayoutError) {
      _ = try parts.dialect()
    } catch {
      found = error.description
    }
    #expect(found.hasPrefix(start), "line \(line): \(found)")
  }

  @Test func `a dialect whose layout has no code needs no codes`() throws {
    let shape = FrameLayout.Shape(
      header: [.type(2), .serial(4).ordered(.little), .length(2)])
    let dialect = try FrameDialect(
      layout: FrameLayout(both: shape), serials: FrameDialect.Serials(client: 1...99),
      maximumBody: 1_000)
    #expect(dialect.codes == nil)
  }

  @Test func `a token without bytes is refused, and a usual dialect is not`() {
    #expect(throws: FrameLayoutError.self) { try FrameDialect.guarded(tokenWidth: 0) }
    expect("nothing") { _ in }
  }

  @Test func `unusable serials are refused`() {
    expect("serials.client: 0 cannot be") { $0.client = 0...9 }
    expect("serials.client: one serial is not enough") { $0.client = 9...9 }
    expect("serials.client: 65536 does not fit") {
      $0.client = 1...65_536
      $0.response[1] = .serial(2)
    }
    expect("serials.server: they overlap") { $0.server = 1000...2000 }
    expect("serials.server: the response shape has no type") {
      $0.server = 2000...3000
      $0.response[0] = .filler(2)
      $0.responseType = .absent
    }
    expect("pushes.serial: 65536 does not") {
      $0.request[1] = .serial(2)
      $0.pushes = FrameDialect.Pushes(serial: 65_536)
    }
  }

  @Test func `unusable heartbeats are refused`() {
    func heartbeat(
      _ client: Ping? = nil, _ server: Ping? = nil, _ interval: Duration = .seconds(1),
      _ timeout: Duration = .seconds(1)
    ) -> FrameDialect.HeartbeatFrames {
      FrameDialect.HeartbeatFrames(
        client: client, server: server, interval: interval, timeout: timeout)
    }
    expect("heartbeat.interval: it must be 200 ms") {
      $0.heartbeat = heartbeat(nil, nil, .milliseconds(199))
    }
    expect("heartbeat.interval: it must") { $0.heartbeat = heartbeat(nil, nil, .seconds(86_401)) }
    expect("heartbeat.timeout: it must be 100 ms") {
      $0.heartbeat = heartbeat(nil, nil, .seconds(1), .milliseconds(99))
    }
    expect("heartbeat.timeout: it is not a whole number") {
      $0.heartbeat = heartbeat(nil, nil, .seconds(1), .microseconds(100_500))
    }
    expect("heartbeat.client.type: 65536 does not fit") {
      $0.heartbeat = heartbeat(Ping(type: 65_536, serials: 1...1))
    }
    expect("heartbeat.server.answer: 65536 does not fit") {
      $0.heartbeat = heartbeat(nil, Ping(type: 1, serials: 1...1, answer: 65_536))
    }
    expect("heartbeat.client.serials: 65536 does not fit") {
      $0.request[1] = .serial(2)
      $0.heartbeat = heartbeat(Ping(type: 1, serials: 1...65_536))
    }
    expect("nothing") {
      $0.request[1] = .serial(2)
      $0.heartbeat = heartbeat(Ping(type: 1, serials: 1001...65_535))
    }
    expect("heartbeat.server: a frame from the client could be the answer to a ping, or a ping") {
      $0.heartbeat = heartbeat(Ping(type: 1, serials: 1...5), Ping(type: 1, serials: 5...9))
    }
    expect("nothing") {
      $0.heartbeat = heartbeat(Ping(type: 1, serials: 1...5), Ping(type: 1, serials: 6...9))
    }
    expect("unknownSerial: it cannot be a heartbeat") { $0.unknownSerial = .heartbeat }
    expect("unknownSerial: it cannot be a heartbeat") {
      $0.unknownSerial = .heartbeat
      $0.heartbeat = heartbeat(nil, Ping(type: 1, serials: 1...5, answer: nil))
    }
  }

  @Test func `ambiguous types are refused`() {
    expect("responseType: the response shape has a type") { $0.responseType = .absent }
    expect("responseType: the response shape has no type") { $0.response[0] = .filler(2) }
    expect("responseType: 65536 does not") { $0.responseType = .fixed(65_536) }
    expect("responseType: a frame from the server could be a response, or a push") {
      $0.responseType = .fixed(7)
      $0.pushes = FrameDialect.Pushes(fromServer: [5...9])
    }
    expect("pushes.fromServer: 65536 does not fit") {
      $0.pushes = FrameDialect.Pushes(fromServer: [5...65_536])
    }
    expect("pushes.fromClient: 16777216 exceeds the largest message type") {
      $0.request[0] = .type(4)
      $0.pushes = FrameDialect.Pushes(fromClient: [5...0x100_0000])
    }
    expect("pushes.fromServer: frames in this direction have no type") {
      $0.response[0] = .filler(2)
      $0.responseType = .absent
      $0.pushes = FrameDialect.Pushes(fromServer: [5...6])
    }
    expect("pushes.fromServer: a frame from the server could be a push, or a push") {
      $0.pushes = FrameDialect.Pushes(fromServer: [5...6, 6...7])
    }
    expect("pushes.fromClient: a frame from the client could be a push, or a cancel") {
      $0.cancel = FrameDialect.Cancel(type: 7, target: .serial)
      $0.pushes = FrameDialect.Pushes(fromClient: [5...7])
    }
    expect("pushes.fromServer: a frame from the server could be a push, or a ping") {
      $0.heartbeat = FrameDialect.HeartbeatFrames(server: Ping(type: 7, serials: 1...2))
      $0.pushes = FrameDialect.Pushes(fromServer: [5...7])
    }
    expect("responseType: a frame from the server could be a response, or a ping") {
      $0.response[0] = .filler(2)
      $0.responseType = .absent
      $0.heartbeat = FrameDialect.HeartbeatFrames(server: Ping(type: 7, serials: 1000...2000))
    }
    expect("cancel.type: 65536 does not fit") {
      $0.cancel = FrameDialect.Cancel(type: 65_536, target: .serial)
    }
    expect("cancel.target: no body is large enough") {
      $0.maximumBody = 3
      $0.cancel = FrameDialect.Cancel(type: 6, target: .body)
    }
    expect("cancel.target: a serial in the body could contain the delimiter") {
      $0.delimiter = FrameLayout.Delimiter([10], inside: .refused)
      $0.cancel = FrameDialect.Cancel(type: 6, target: .body)
    }
    expect("cancel.target: the serial field is too narrow") {
      $0.request = [.type(4), .serial(2), .length(2)]
      $0.cancel = FrameDialect.Cancel(type: 6, target: .type)
    }
  }

  @Test func `unusable codes are refused`() {
    typealias Codes = FrameDialect.Codes
    expect("codes: the layout has a code, but no code") { $0.codes = nil }
    expect("codes: the layout has no code") { $0.response.remove(at: 2) }
    expect("codes.success: it must not be empty") { $0.codes = Codes(success: [], failure: 1) }
    expect("codes.success[0]: 256 does not") { $0.codes = Codes(success: [256], failure: 1) }
    expect("codes.success[1]: 0 already has") { $0.codes = Codes(success: [0, 0], failure: 1) }
    expect("codes.failure: 0 means success") { $0.codes = Codes(success: [0], failure: 0) }
    expect("codes.failure: 256 means") { $0.codes = Codes(success: [0], failure: 256) }
    expect("codes.errors[0]: 0 already has a meaning") {
      $0.codes = Codes(success: [0], failure: 1, errors: [DialectErrorCode(0, "zero")])
    }
    expect("codes.errors[0]: 200 is no error code") {
      $0.codes = Codes(success: [0], failure: 1, errors: [DialectErrorCode(200, "two")])
    }
    expect("codes.errors[0]: 9 is no error code") {
      $0.codes = Codes(success: [0], failure: 1, errors: [DialectErrorCode(9, "nine", native: .ok)])
    }
    expect("codes.errors[0]: 4294967295 is no error code") {
      $0.response[2] = .code(4)
      $0.codes = Codes(success: [0], failure: 1, errors: [DialectErrorCode(.max, "minus one")])
    }
    expect("nothing") {
      $0.response[2] = .code(4)
      $0.codes = Codes(
        success: [0], failure: 1, errors: [DialectErrorCode(.max, "minus one", native: .failed)])
    }
  }

  @Test func `a length too narrow for the largest body is refused`() {
    expect("maximumBody: it must be 1 to") { $0.maximumBody = 0 }
    expect("maximumBody: it must be 1 to") { $0.maximumBody = 1 << 30 + 1 }
    expect("maximumBody: 65536 bytes of body need a length") { $0.maximumBody = 65_536 }
    expect("nothing") { $0.maximumBody = 65_535 }
    expect("maximumBody: 65528 bytes of body need a length of more than the 2 bytes that the r") {
      $0.request[2] = .length(2, of: .frame)
      $0.maximumBody = 65_528
    }
    expect("nothing") {
      $0.request[2] = .length(2, of: .frame)
      $0.maximumBody = 65_527
    }
  }

  @Test func `codes are translated in both directions`() throws {
    let codes = try #require(try FrameDialect.guarded().codes)
    #expect(codes.native(of: 200) == .ok)
    #expect(codes.native(of: 401) == .unknownType)
    #expect(codes.native(of: 403) == .failed && codes.native(of: 404) == .failed)
    #expect(codes.native(of: 105).rawValue == 105)
    #expect(codes.native(of: 5000).rawValue == 5000)
    #expect(codes.native(of: .max) == .failed)
    #expect(codes.wire(of: .ok, largest: .max) == 200)
    #expect(codes.wire(of: .unknownType, largest: .max) == 401)
    #expect(codes.wire(of: .failed, largest: .max) == 404)
    #expect(codes.wire(of: 5000, largest: .max) == 5000)
    // 401 means something else here, and 300 does not fit into a byte.
    #expect(codes.wire(of: .unauthenticated, largest: .max) == 404)
    let narrow = FrameDialect.Codes(success: [0], failure: 1)
    #expect(narrow.wire(of: 300, largest: 255) == 1)
    #expect(narrow.wire(of: 0, largest: 255) == 1)
    #expect(narrow.native(of: 200) == .failed)
    #expect(codes.error(455)?.name == "badRequestChecksum")
  }

  @Test func `a token has to be as long as its field`() throws {
    let dialect = try FrameDialect.guarded(tokenWidth: 4)
    #expect(throws: DialectTokenError(bytes: 3, insteadOf: 4)) {
      try DialectCodec(dialect, role: .client, token: [1, 2, 3])
    }
    #expect(throws: DialectTokenError.self) { try DialectCodec(dialect, role: .client) }
    #expect(throws: DialectTokenError.self) {
      try DialectCodec(dialect, role: .server, token: [1, 2, 3, 4])
    }
    #expect(throws: Never.self) { try DialectCodec(dialect, role: .server) }
  }
}
