// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// The numbers that fit into a header: 23 bits of a response code, and 24 of a message type.
@Suite struct ResponseCodeTests {
  @Test func `a number that does not fit makes no code and no type`() {
    #expect(ResponseCode(rawValue: 0)?.rawValue == 0)
    #expect(ResponseCode(rawValue: 8_388_607)?.rawValue == 8_388_607)
    #expect(ResponseCode(rawValue: 8_388_608) == nil)
    #expect(ResponseCode(rawValue: .max) == nil)
    #expect(MessageType(rawValue: 16_777_215)?.rawValue == 16_777_215)
    #expect(MessageType(rawValue: 16_777_216) == nil)
  }

  @Test func `a literal that does not fit traps`() async {
    await #expect(processExitsWith: .failure) { _ = 8_388_608 as ResponseCode }
    await #expect(processExitsWith: .success) { _ = 8_388_607 as ResponseCode }
    await #expect(processExitsWith: .failure) { _ = 16_777_216 as MessageType }
    await #expect(processExitsWith: .success) { _ = 16_777_215 as MessageType }
  }

  @Test func `the bit that marks a refusal is no part of a peer's code`() {
    #expect(ResponseCode(wire: 429 | Wire.refusedBit) == .overloaded)
    #expect(ResponseCode(wire: .max).rawValue == 8_388_607)
  }
}
