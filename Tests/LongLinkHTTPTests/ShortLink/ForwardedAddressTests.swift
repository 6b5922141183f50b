// SPDX-License-Identifier: Apache-2.0

#if HTTP
import LongLinkServer
import LongLinkTransport
import NIOHTTP1
import Testing

@testable import LongLinkHTTPServer

extension HTTPTests {
  /// Whose address a request behind proxies has.
  @Suite struct ForwardedAddressTests {
    private func client(
      of socket: String, trusting proxies: [String],
      in header: HTTPGatewayConfiguration.ForwardedHeader = .xForwardedFor,
      _ headers: [(String, String)]
    ) throws -> String? {
      let address = try #require(SocketAddress(literal: socket, port: 1))
      return ForwardedAddress(trusting: proxies, in: header)
        .client(address, HTTPHeaders(headers))?.host
    }

    @Test(arguments: [
      ("192.0.2.1, 10.0.0.2", "192.0.2.1"),
      ("203.0.113.9, 192.0.2.1", "192.0.2.1"),
      ("192.0.2.1", "192.0.2.1"),
      (" 192.0.2.1:8080 ,10.9.9.9", "192.0.2.1"),
      ("2001:db8::1", "2001:db8::1"),
      ("[2001:db8::1]:99", "2001:db8::1"),
      ("192.0.2.1, unknown, 10.0.0.2", "10.0.0.2"),
      ("192.0.2.1, fe80::1%lo", "10.0.0.1"),
      ("", "10.0.0.1"),
      (",,,", "10.0.0.1"),
      ("10.0.0.3", "10.0.0.3"),
    ])
    func `the last address that is no proxy's counts`(_ header: String, _ found: String) throws {
      let proxies = ["10.0.0.0/8"]
      #expect(
        try client(of: "10.0.0.1", trusting: proxies, [("X-Forwarded-For", header)]) == found)
      // From anyone else the header is a claim.
      #expect(
        try client(of: "198.51.100.1", trusting: proxies, [("X-Forwarded-For", header)])
          == "198.51.100.1")
      #expect(try client(of: "10.0.0.1", trusting: [], [("X-Forwarded-For", header)]) == "10.0.0.1")
    }

    @Test(arguments: [
      ("for=192.0.2.1", "192.0.2.1"),
      ("proto=https;For=\"[2001:db8::1]:99\";by=10.0.0.1", "2001:db8::1"),
      ("for=192.0.2.1, for=10.0.0.2", "192.0.2.1"),
      ("for=_hidden", "10.0.0.1"),
      ("proto=https", "10.0.0.1"),
    ])
    func `the header that the proxies set counts, the other is a claim`(
      _ header: String, _ found: String
    ) throws {
      let headers = [("X-Forwarded-For", "203.0.113.7"), ("Forwarded", header)]
      let proxies = ["10.0.0.0/8"]
      #expect(try client(of: "10.0.0.1", trusting: proxies, in: .forwarded, headers) == found)
      #expect(try client(of: "10.0.0.1", trusting: proxies, headers) == "203.0.113.7")
      #expect(try client(of: "10.0.0.1", trusting: proxies, [("Forwarded", header)]) == "10.0.0.1")
    }

    @Test func `a long header is looked at from its end`() throws {
      let addresses = Array(repeating: "192.0.2.1", count: 6_000) + ["198.51.100.7", "10.0.0.2"]
      let header = [("X-Forwarded-For", addresses.joined(separator: ","))]
      #expect(try client(of: "10.0.0.1", trusting: ["10.0.0.0/8"], header) == "198.51.100.7")
    }

    @Test func `networks are compared bit by bit`() throws {
      for (network, inside, outside) in [
        ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"), ("192.0.2.128/25", "192.0.2.129", "192.0.2.1"),
        ("fd00::/8", "fd12::1", "fe00::1"), ("2001:db8::/127", "2001:db8::1", "2001:db8::2"),
        ("10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2"), ("::1", "::1", "::2"),
      ] {
        let range = try #require(AddressRange(network))
        #expect(range.contains(try #require(SocketAddress(literal: inside, port: 5))), "\(network)")
        #expect(
          !range.contains(try #require(SocketAddress(literal: outside, port: 5))), "\(network)")
      }
      for text in ["", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "host", "::/129"] {
        #expect(AddressRange(text) == nil, "\(text)")
      }
      #expect(try #require(AddressRange("0.0.0.0/0")).contains(.ipv4(1, 2, 3, 4, port: 0)))
    }
  }
}
#endif
