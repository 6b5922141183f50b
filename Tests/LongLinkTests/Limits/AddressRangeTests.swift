// SPDX-License-Identifier: Apache-2.0

import LongLinkServer
import LongLinkTransport
import Testing

/// Networks of addresses.
@Suite struct AddressRangeTests {
  private static func address(_ text: String) throws -> SocketAddress {
    try #require(SocketAddress(literal: text, port: 7))
  }

  @Test(arguments: [
    ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
    ("10.1.2.3/8", "10.9.9.9", "9.255.255.255"),
    ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
    ("192.0.2.8/30", "192.0.2.11", "192.0.2.12"),
    ("::1", "::1", "::2"),
    ("fd00::/8", "fdff::1", "fe00::1"),
    ("2001:db8:1:2::/64", "2001:db8:1:2:ffff::", "2001:db8:1:3::"),
    ("2001:db8::80/121", "2001:db8::ff", "2001:db8::7f"),
    ("10.0.0.0/8", "::ffff:10.1.1.1", "::ffff:11.1.1.1"),
    ("::ffff:10.0.0.0/104", "10.1.1.1", "11.1.1.1"),
    ("::ffff:10.0.0.0/104", "::ffff:10.1.1.1", "::10.1.1.1"),
    ("::/64", "10.1.1.1", "1::"),
    ("::ffff:0:0/96", "10.1.1.1", "::fffe:10.1.1.1"),
  ])
  func `a range contains its addresses and no other`(
    _ range: String, _ inside: String, _ outside: String
  ) throws {
    let range = try #require(AddressRange(range))
    #expect(range.contains(try Self.address(inside)))
    #expect(!range.contains(try Self.address(outside)))
  }

  @Test func `a prefix of no bits contains every address of its family`() throws {
    let all4 = try #require(AddressRange("0.0.0.0/0"))
    #expect(all4.contains(try Self.address("255.255.255.255")))
    #expect(!all4.contains(try Self.address("::1")))
    let all6 = try #require(AddressRange("::/0"))
    #expect(all6.contains(try Self.address("ffff::1")))
    // IPv4 in IPv6 is IPv4 in every other place, and lies in the whole of IPv6 as well.
    #expect(all6.contains(try Self.address("1.2.3.4")))
    #expect(!all6.contains(.unix(path: "/tmp/x")))
  }

  @Test(arguments: [
    "", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0/8", "::/129",
    "::1/ 8", "localhost", "fe80::1%lo", "10.0.0.0/8/8", "::/99999999999999999999", "10.0.0.0/٨",
  ])
  func `what is no range is refused`(_ text: String) {
    #expect(AddressRange(text) == nil)
  }

  @Test(arguments: [
    ("10.1.2.3/8", "10.0.0.0/8"), ("10.1.2.3", "10.1.2.3"), ("10.1.2.3/32", "10.1.2.3"),
    ("fd12::5/8", "fd00::/8"), ("::1", "::1"), ("::ffff:10.1.2.3/104", "10.0.0.0/8"),
  ])
  func `ranges with the same addresses are equal, and have one text`(
    _ one: String, _ other: String
  ) throws {
    let range = try #require(AddressRange(one))
    #expect(range == AddressRange(other))
    #expect("\(range)" == other)
  }
}
