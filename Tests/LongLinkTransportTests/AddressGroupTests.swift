// SPDX-License-Identifier: Apache-2.0

import LongLinkTransport
import Testing

@Suite struct AddressGroupTests {
  private static func group(_ literal: String) -> SocketAddress.Group? {
    SocketAddress(literal: literal, port: 1)?.group
  }

  @Test func `a host is an IPv4 address, or an IPv6 network of 64 bits`() {
    #expect(Self.group("192.0.2.1") == SocketAddress.ipv4(192, 0, 2, 1, port: 9).group)
    #expect(Self.group("192.0.2.1") != Self.group("192.0.2.2"))
    #expect(Self.group("2001:db8:1:2::3") == Self.group("2001:db8:1:2:ffff::4"))
    #expect(Self.group("2001:db8:1:2::3") != Self.group("2001:db8:1:3::3"))
    #expect(Self.group("::ffff:192.0.2.1") == Self.group("192.0.2.1"))
    #expect(SocketAddress.unix(path: "/a").group == nil)
  }

  @Test(arguments: [
    ("127.0.0.1", true), ("127.9.9.9", true), ("::1", true), ("::ffff:127.0.0.1", true),
    ("128.0.0.1", false), ("::2", false), ("fe80::1", false),
  ])
  func `loopback is distinguished from other addresses`(_ literal: String, _ isLoopback: Bool) {
    #expect(Self.group(literal)?.isLoopback == isLoopback)
  }
}
