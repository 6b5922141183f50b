// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkTransport

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

struct AddressTests {
  @Test(arguments: [
    ("127.0.0.1", "127.0.0.1:9000"), ("0.0.0.0", "0.0.0.0:9000"),
    ("255.1.2.3", "255.1.2.3:9000"), ("::1", "[::1]:9000"), ("[::1]", "[::1]:9000"),
    ("2001:DB8:0:0:0:0:0:7", "[2001:db8::7]:9000"), ("fe80::1%3", "[fe80::1%3]:9000"),
  ])
  func `a literal is read and written`(literal: String, text: String) throws {
    let address = try #require(SocketAddress(literal: literal, port: 9000))
    #expect(address.description == text)
    #expect(address.port == 9000)
    #expect(SocketAddress(literal: try #require(address.host), port: 9000) == address)
  }

  @Test(arguments: [
    "", "localhost", "1.2.3", "1.2.3.4.5", "256.1.1.1", "::1%", "fe80::1%nowhere", "[::1", "1:2",
    "127.0.0.1\u{0}", "[127.0.0.1]",
  ])
  func `a name is not a literal`(text: String) {
    #expect(SocketAddress(literal: text, port: 1) == nil)
  }

  @Test(arguments: [
    SocketAddress.ipv4(10, 20, 30, 40, port: 65535),
    SocketAddress(literal: "2001:db8::ff00:42:8329", port: 1)!,
    SocketAddress(literal: "fe80::1%7", port: 80)!,
    .unix(path: "/tmp/socket"),
  ])
  func `the system's form and back is the same address`(address: SocketAddress) throws {
    let copy = try unsafe address.withNative { (native, length) throws(Errno) in
      unsafe SocketAddress(native: UnsafeRawBufferPointer(start: native, count: Int(length)))
    }
    #expect(copy == address)
  }

  @Test func `an address of another family, or a truncated one, is none`() throws {
    try unsafe SocketAddress.ipv4(1, 2, 3, 4, port: 5).withNative {
      (native, length) throws(Errno) in
      for count in 0..<Int(length) {
        let bytes = unsafe UnsafeRawBufferPointer(start: native, count: count)
        #expect(unsafe SocketAddress(native: bytes) == nil)
      }
    }
    var other = sockaddr()
    other.sa_family = 99
    #expect(unsafe withUnsafeBytes(of: other) { unsafe SocketAddress(native: $0) } == nil)
  }

  @Test func `a path that does not fit names the limit`() throws {
    let longest = String(repeating: "a", count: SocketAddress.longestUnixPath)
    _ = try unsafe SocketAddress.unix(path: longest).withNative { _, _ in }
    let address = SocketAddress.unix(path: longest + "a")
    let error = #expect(throws: SocketError.self) {
      try Bench(.systemDefault).listen(on: address)
    }
    #expect(error?.errno == ENAMETOOLONG)
    #expect(error?.description.contains("\(SocketAddress.longestUnixPath) bytes") == true)
  }

  @Test(arguments: ["", "a\u{0}b"])
  func `a path that the system would read as another one is refused`(path: String) {
    #expect(throws: Errno(EINVAL)) {
      try unsafe SocketAddress.unix(path: path).withNative { _, _ in }
    }
  }

  @Test func `an error has the operation, the address and the name of the error code`() {
    let error = SocketError(
      operation: "connect",
      errno: ECONNREFUSED,
      address: .ipv4(127, 0, 0, 1, port: 9)
    )
    #expect(error.description == "connect 127.0.0.1:9: Connection refused (ECONNREFUSED)")
    #expect(SocketError(operation: "x", errno: 4095).description.hasSuffix("(errno 4095)"))
  }
}
