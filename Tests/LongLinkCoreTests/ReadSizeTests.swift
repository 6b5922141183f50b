// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// Reads end where large frames end, so that nothing is left over that would be copied.
@Suite struct ReadSizeTests {
  private let limit = 131_200

  @Test func `without a large frame as much as possible is read`() {
    let side = opened(.server)
    #expect(side.connection.inbox.readSize(upTo: limit) == limit)
    side.receive(RawFrame(.request, serial: 50, body: [UInt8](repeating: 7, count: 1_000)))
    #expect(side.connection.inbox.readSize(upTo: limit) == limit)
  }

  @Test(arguments: [(20_000, 6), (65_536, 2), (100_000, 1)])
  func `as many large frames are read as fit, after the rest of the one that has begun`(
    length: Int, fitting: Int
  ) {
    let side = opened(.server)
    let body = [UInt8](repeating: 7, count: length)
    let count = 16 + length
    side.receive(RawFrame(.request, serial: 50, body: body))
    #expect(side.connection.inbox.readSize(upTo: limit) == fitting * count)
    for (serial, begun) in [(51, 10), (52, 10_000)] as [(UInt32, Int)] {
      let bytes = RawFrame(.request, serial: serial, body: body).bytes
      side.receive(Array(bytes.prefix(begun)))
      let rest = count - begun
      #expect(side.connection.inbox.readSize(upTo: limit) == rest + (limit - rest) / count * count)
      side.receive(Array(bytes.dropFirst(begun)))
    }
  }

  @Test func `of a larger frame as much as possible is read, and then its end`() {
    let side = opened(.server)
    let body = [UInt8](repeating: 7, count: 300_000)
    side.receive(RawFrame(.request, serial: 50, body: body))
    #expect(side.connection.inbox.readSize(upTo: limit) == limit)
    let bytes = RawFrame(.request, serial: 51, body: body).bytes
    side.receive(Array(bytes.prefix(200_000)))
    #expect(side.connection.inbox.readSize(upTo: limit) == bytes.count - 200_000)
  }
}
