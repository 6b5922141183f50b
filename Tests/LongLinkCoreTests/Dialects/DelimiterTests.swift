// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDialects
import LongLinkTestSupport
import Testing

@Suite struct DelimiterTests {
  static let insides: [FrameLayout.Delimiter.Inside] = [.lengthChecked, .escaped(0x5C), .refused]

  @Test(arguments: insides)
  func `a damaged packet is dropped and the others are read`(
    inside: FrameLayout.Delimiter.Inside
  ) throws {
    let dialect = try FrameDialect.delimited(inside)
    let client = try DialectSide(dialect, .client)
    let bodies: [[UInt8]] = (1...5).map { Array("body number \($0)".utf8) }
    let packets = bodies.enumerated().map { client.request(9, UInt32($0 + 1), $1) }
    for bit in 0..<8 * packets[2].count {
      var damaged = packets
      damaged[2][bit / 8] ^= 1 << UInt8(bit % 8)
      var server = try DialectSide(dialect, .server)
      server.read(damaged.joined())
      // A length that waits for more than there is.
      if server.damages.isEmpty { server.abandonFrame() }
      let serials = server.frames.map(\.frame.head.serial)
      // A packet whose end was damaged may take its neighbour along, never more.
      #expect(serials.contains(1) && serials.contains(2) && serials.contains(5))
      #expect(!serials.contains(3), "bit \(bit)")
      #expect(server.violation == nil && !server.damages.isEmpty)
      let isInside = bit / 8 < packets[2].count - 2
      if isInside, inside != .escaped(0x5C) { #expect(serials == [1, 2, 4, 5], "bit \(bit)") }
    }
  }

  @Test func `a length decides where a body holds a delimiter`() throws {
    let dialect = try FrameDialect.delimited(.lengthChecked)
    let client = try DialectSide(dialect, .client)
    var server = try DialectSide(dialect, .server)
    let body: [UInt8] = [0x0D, 0x0A, 1, 0x0D, 0x0A, 0x0D, 0x0A]
    server.read(client.request(9, 1, body))
    #expect(server.frames.first?.body == body)
  }

  @Test func `an escaped body is what it was`() throws {
    let dialect = try FrameDialect.delimited(.escaped(0x5C))
    let client = try DialectSide(dialect, .client)
    var server = try DialectSide(dialect, .server)
    let bodies: [[UInt8]] = [
      [], [0x0D], [0x5C], [0x0A], [0x0D, 0x0A], [0x5C, 0x0D, 0x0A, 0x5C], [0x5C, 0x5C, 0x0D],
    ]
    for (index, body) in bodies.enumerated() {
      for byte in client.request(9, UInt32(index + 1), body) { server.read([byte]) }
    }
    #expect(server.frames.map(\.body) == bodies)
  }

  @Test func `a body that must not hold a delimiter is not sent with one`() throws {
    let client = try DialectSide(.delimited(.refused, [1, 2, 1]), .client)
    func isSent(_ body: [UInt8]) -> Bool {
      client.bytes(FrameHead(.request, tag: 9, serial: 1, length: 0), body) != nil
    }
    #expect(isSent([1, 2]) == false, "its end and the delimiter make one too early")
    #expect(isSent([5, 1, 2, 1, 5]) == false)
    #expect(isSent([1, 2, 1]) == false)
    #expect(isSent([1]) && isSent([2, 1]) && isSent([1, 1, 2, 5]) && isSent([]))
  }

  @Test func `noise of any length keeps no more than a packet may have`() throws {
    for inside in Self.insides {
      let dialect = try FrameDialect.delimited(inside, maximumBody: 100)
      let client = try DialectSide(dialect, .client)
      var server = try DialectSide(dialect, .server)
      server.read(client.request(9, 1).dropLast())
      for index in 0..<20_000 {
        server.read([UInt8(truncatingIfNeeded: index % 251)])
        #expect(server.waiting <= client.codec.room(forBody: 100) + 8)
      }
      // One damage is told once, however long what follows it is.
      #expect(server.damages.count < 5, "\(inside)")
      server.read([0x0D, 0x0A] + client.request(9, 2))
      #expect(server.frames.last?.frame.head.serial == 2, "\(inside)")
    }
  }

  @Test func `a packet that does not end is given up, and the next one is read`() throws {
    for inside in Self.insides {
      let dialect = try FrameDialect.delimited(inside)
      let client = try DialectSide(dialect, .client)
      var server = try DialectSide(dialect, .server)
      let packet = client.request(9, 1, Array("never ends".utf8))
      server.read(packet.dropLast(4))
      server.abandonFrame()
      #expect(server.damages == [Violation(.frameTimeout)])
      server.abandonFrame()
      #expect(server.damages.count == 1, "while nothing is found there is nothing to give up")
      server.read([0x0D, 0x0A] + client.request(9, 2))
      #expect(server.frames.map(\.frame.head.serial) == [2], "\(inside)")
    }
    var native = try DialectSide(.small(), .server)
    native.abandonFrame()
    #expect(native.damages.isEmpty)
  }

  @Test(arguments: insides, [false, true])
  func `a large packet that comes byte by byte is searched once`(
    inside: FrameLayout.Delimiter.Inside, isDamaged: Bool
  ) throws {
    let dialect = try FrameDialect.delimited(inside, maximumBody: 5000)
    let client = try DialectSide(dialect, .client)
    var bytes = client.request(9, 1, [UInt8](repeating: 0x41, count: 5000))
    if isDamaged { bytes[0] = 0 }
    bytes += client.request(9, 2)
    let codec = try DialectCodec(dialect, role: .server)
    var decoder = DialectDecoder(codec)
    var (begin, serials) = (0, [UInt32]())
    for end in 1...bytes.count {
      while true {
        let step = unsafe bytes.withUnsafeMutableBytes { buffer in
          unsafe decoder.next(in: UnsafeMutableRawBufferPointer(rebasing: buffer[begin..<end]))
        }
        if case .needMore = step {
          // Not all that has come is looked at again with the next byte.
          let left = end - begin - decoder.searched
          #expect(inside == .lengthChecked && !decoder.isLost || left <= 20)
          break
        }
        switch step {
        case .frame(let frame):
          serials.append(frame.head.serial)
          begin += frame.length
        case .damaged(let count, _), .skipped(let count): begin += count
        case .needMore, .violation: Issue.record("not here: \(step)")
        }
      }
    }
    #expect(serials == (isDamaged ? [2] : [1, 2]))
  }
}
