// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDialects
import LongLinkTestSupport
import Testing

@Suite struct DialectCodecTests {
  private func pair(_ dialect: FrameDialect) throws -> (client: DialectSide, server: DialectSide) {
    (try DialectSide(dialect, .client), try DialectSide(dialect, .server))
  }

  @Test func `the guarded dialect's bytes are those of its description`() throws {
    let client = try DialectSide(.guarded(tokenWidth: 4), .client)
    let body: [UInt8] = Array("Wikipedia".utf8)
    #expect(
      client.request(0x105, 51, body) == [
        0x41, 0x42, 0x43, 0x44, 0, 0, 1, 5, 0, 0, 0, 51, 0, 0, 0, 9,
      ] + body + [0, 0, 0, 0, 0x11, 0xE6, 0x03, 0x98, 0, 0, 1, 5])
    let server = try DialectSide(.guarded(), .server)
    #expect(
      server.response(.ok, 51, to: 0x105) == [
        0, 0, 1, 5, 0, 0, 0, 51, 0, 0, 0, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 5,
      ])
    #expect(server.codec.peer == 0..<36 && client.codec.peer == nil)
    // A cancel names the type; a heartbeat has nothing but its serial.
    #expect(client.cancel(51, of: 0x105)[4..<12] == [0, 0, 0, 2, 0, 0, 1, 5])
    #expect(client.pong(7)[4..<16] == [0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0])
  }

  @Test func `the guarded dialect distinguishes its frames`() throws {
    var (client, server) = try pair(.guarded())
    server.read(
      client.request(0x105, 51, [1, 2]) + client.cancel(51, of: 0x105) + client.pong(9))
    #expect(server.heads == ["request 261 51 2", "cancel 261 0 0", "pong 0 9 0"])
    client.read(
      server.ping(3) + server.response(.ok, 51, to: 0x105, [5]) + server.push(1, [6])
        + server.response(.unknownType, 52, to: 0x106))
    #expect(
      client.heads == ["ping 0 3 0", "response 200 51 1", "push 1 1 1", "response 404 52 0"])
    #expect(client.frames.map(\.frame.code) == [200, 200, 200, 401])
    // A serial that no request can have is a heartbeat, whatever its type.
    client.read(server.response(.ok, 12, to: 0x105))
    #expect(client.heads.last == "ping 0 12 0")
    #expect(client.violation == nil && server.violation == nil)
  }

  @Test func `the bare dialect distinguishes its frames`() throws {
    var (client, server) = try pair(.bare)
    server.read(client.request(0x401, 0x401, [1]) + client.ping(1) + client.pong(8))
    #expect(server.heads == ["request 1025 1025 1", "ping 0 1 0", "pong 0 8 0"])
    client.read(
      server.pong(1) + server.ping(2) + server.push(0x400) + server.push(0)
        + server.response(.failed, 0x401, to: 0x401))
    #expect(
      client.heads == [
        "pong 0 1 0", "ping 0 2 0", "push 1024 1 0", "push 0 1 0", "response 500 1025 0",
      ])
    #expect(client.codec.pingSerial(1) == 1 && client.codec.pingSerial(2) == 1)
    #expect(server.codec.pingSerial(1) == 2 && server.codec.pingSerial(2) == 3)
    #expect(!client.codec.canSendCancel(of: 0x401))
    #expect(!client.codec.canSendRequest(0x400, serial: 0x401))
    #expect(client.codec.canSendRequest(0x401, serial: 0x401))
    #expect(!client.codec.canSendRequest(0x401, serial: 0x400))
    #expect(!server.codec.canSendRequest(0x401, serial: 0x401))
  }

  @Test func `the small dialect's bytes are those of its description`() throws {
    let (client, server) = try pair(.small())
    let bytes = client.request(0x0102, 3, [0xAA])
    #expect(bytes[4...] == [13, 0, 2, 1, 3, 0, 0, 0, 0xAA])
    let sum = unsafe bytes[4...].withUnsafeBytes { unsafe CRC32.checksum(of: $0) }
    #expect(bytes[..<4] == [0, 8, 16, 24].map { UInt8(truncatingIfNeeded: sum >> $0) }[...])
    let response = server.response(.overloaded, 3, to: 0x0102)
    #expect(response[4...] == [13, 0, 2, 0x41, 3, 0, 0, 0, 2])
  }

  @Test func `both sides of the small dialect ask, push and cancel`() throws {
    var (client, server) = try pair(.small())
    server.read(
      client.request(7, 1, [1, 2, 3]) + client.push(0xF100) + client.cancel(1, of: 7)
        + client.ping(5) + client.response(.ok, 0x8000_0000, to: 9))
    #expect(
      server.heads == [
        "request 7 1 3", "push 61696 1 0", "cancel 0 1 0", "ping 0 5 0",
        "response 200 2147483648 0",
      ])
    client.read(
      server.request(9, 0x8000_0000) + server.cancel(0x8000_0000, of: 9) + server.pong(5)
        + server.response(.failed, 1, to: 7))
    #expect(
      client.heads == [
        "request 9 2147483648 0", "cancel 0 2147483648 0", "pong 0 5 0", "response 1 1 0",
      ])
    #expect(client.codec.requestType(of: client.frames[3].frame) == 7)
    // A client's shape has no code: it cannot tell of a failure.
    #expect(client.codec.canSendResponse(.ok) && !client.codec.canSendResponse(.failed))
    #expect(client.violation == nil && server.violation == nil)
  }

  @Test func `each flipped bit of a summed frame is found or changes nothing`() throws {
    let (client, _) = try pair(.small())
    let bytes = client.request(7, 1, Array(1...20))
    for bit in 0..<8 * bytes.count {
      var server = try DialectSide(.small(), .server)
      var damaged = bytes
      damaged[bit / 8] ^= 1 << UInt8(bit % 8)
      server.read(damaged)
      #expect(server.frames.isEmpty)
    }
  }

  @Test func `a length over the limit is found on the header`() throws {
    let client = try DialectSide(.guarded(), .client)
    var server = try DialectSide(.guarded(), .server)
    var bytes = client.request(7, 51)
    bytes.replaceSubrange(44..<48, with: [0, 0, 0x4E, 0x21])
    server.read(bytes.prefix(48))
    #expect(server.violation?.rule == .lengthOverLimit)
    #expect(server.violation?.value == 20_001)
  }
}
