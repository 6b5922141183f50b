// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary

extension SocketAddress {
  static func parse(_ literal: String, port: UInt16) -> Storage? {
    // The system would stop at a NUL.
    guard !literal.utf8.contains(0) else { return nil }
    var address = in_addr()
    if unsafe inet_pton(AF_INET, literal, &address) == 1 {
      return .ipv4(UInt32(bigEndian: address.s_addr), port: port)
    }
    var text = Substring(literal)
    if text.hasPrefix("["), text.hasSuffix("]") { text = text.dropFirst().dropLast() }
    var scope: UInt32 = 0
    if let mark = text.firstIndex(of: "%") {
      let zone = String(text[text.index(after: mark)...])
      scope = unsafe UInt32(zone) ?? if_nametoindex(zone)
      guard scope != 0 else { return nil }
      text = text[..<mark]
    }
    var address6 = in6_addr()
    guard unsafe inet_pton(AF_INET6, String(text), &address6) == 1 else { return nil }
    let (upper, lower) = halves(of: address6)
    return .ipv6(upper: upper, lower: lower, port: port, scope: scope)
  }

  package static func text(ipv4 address: UInt32) -> String {
    "\(address >> 24).\(address >> 16 & 255).\(address >> 8 & 255).\(address & 255)"
  }

  package static func text(ipv6 upper: UInt64, _ lower: UInt64, scope: UInt32) -> String {
    var address = in6(upper, lower)
    let text = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
      guard
        let text = unsafe inet_ntop(
          AF_INET6,
          &address,
          buffer.baseAddress!,
          socklen_t(buffer.count)
        )
      else { return "?" }
      return unsafe String(cString: text)
    }
    return scope == 0 ? text : "\(text)%\(scope)"
  }

  static func halves(of address: in6_addr) -> (upper: UInt64, lower: UInt64) {
    unsafe withUnsafeBytes(of: address) { bytes in
      (
        unsafe UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
        unsafe UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      )
    }
  }

  static func in6(_ upper: UInt64, _ lower: UInt64) -> in6_addr {
    var address = in6_addr()
    unsafe withUnsafeMutableBytes(of: &address) { bytes in
      unsafe bytes.storeBytes(of: upper.bigEndian, toByteOffset: 0, as: UInt64.self)
      unsafe bytes.storeBytes(of: lower.bigEndian, toByteOffset: 8, as: UInt64.self)
    }
    return address
  }
}
