// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary

extension SocketAddress {
  /// The most bytes of a path that fit in the system's structure, besides the final NUL.
  package static var longestUnixPath: Int { MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1 }

  var nativeFamily: CInt {
    switch storage {
    case .ipv4: AF_INET
    case .ipv6: AF_INET6
    case .unix: AF_UNIX
    }
  }

  /// Calls `body` with the address in the system's own form. Throws for a path that has no such
  /// form.
  func withNative<R>(
    _ body: (UnsafePointer<sockaddr>, socklen_t) throws(Errno) -> R
  ) throws(Errno) -> R {
    var native = sockaddr_storage()
    let length = try unsafe withUnsafeMutableBytes(of: &native) {
      (bytes) throws(Errno) -> socklen_t in
      try unsafe fill(bytes)
    }
    return try unsafe withUnsafeBytes(of: &native) { (bytes) throws(Errno) -> R in
      try unsafe body(bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self), length)
    }
  }

  private func fill(_ bytes: UnsafeMutableRawBufferPointer) throws(Errno) -> socklen_t {
    switch storage {
    case .ipv4(let address, let port):
      var native = sockaddr_in()
      native.sin_family = sa_family_t(AF_INET)
      native.sin_port = port.bigEndian
      native.sin_addr.s_addr = address.bigEndian
      return unsafe Self.store(native, in: bytes)
    case .ipv6(let upper, let lower, let port, let scope):
      var native = sockaddr_in6()
      native.sin6_family = sa_family_t(AF_INET6)
      native.sin6_port = port.bigEndian
      native.sin6_addr = Self.in6(upper, lower)
      native.sin6_scope_id = scope
      return unsafe Self.store(native, in: bytes)
    case .unix(let path):
      let length = path.utf8.count
      guard length <= Self.longestUnixPath else { throw Errno(ENAMETOOLONG) }
      // The system would stop at the first NUL, and treat a leading one as another namespace.
      guard length > 0, !path.utf8.contains(0) else { throw Errno(EINVAL) }
      var native = sockaddr_un()
      native.sun_family = sa_family_t(AF_UNIX)
      unsafe withUnsafeMutableBytes(of: &native.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
      return unsafe Self.store(native, in: bytes)
    }
  }

  private static func store<T>(_ native: T, in bytes: UnsafeMutableRawBufferPointer) -> socklen_t {
    unsafe bytes.storeBytes(of: native, as: T.self)
    #if canImport(Darwin)
    // On Darwin, the first byte of every address is its length.
    unsafe bytes[0] = UInt8(MemoryLayout<T>.size)
    #endif
    return socklen_t(MemoryLayout<T>.size)
  }

  /// Reads the address that `body` makes the system fill in; nil for an unknown family.
  static func native(
    _ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) throws(Errno) -> Void
  ) throws(Errno) -> SocketAddress? {
    var native = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    try unsafe withUnsafeMutableBytes(of: &native) { (bytes) throws(Errno) in
      try unsafe body(bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length)
    }
    return unsafe withUnsafeBytes(of: &native) { bytes in
      unsafe SocketAddress(native: UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(length))))
    }
  }

  /// Reads the system's own form of an address; nil for an unknown family.
  init?(native bytes: UnsafeRawBufferPointer) {
    // The common start of every family's structure: on Linux a family of two bytes, elsewhere a
    // length and a family of one byte each.
    let header = MemoryLayout<sockaddr>.offset(of: \.sa_data)!
    guard bytes.count >= header else { return nil }
    let family = unsafe CInt(
      bytes.loadUnaligned(
        fromByteOffset: MemoryLayout<sockaddr>.offset(of: \.sa_family)!,
        as: sa_family_t.self
      )
    )
    switch family {
    case AF_INET where bytes.count >= MemoryLayout<sockaddr_in>.size:
      let native = unsafe bytes.loadUnaligned(as: sockaddr_in.self)
      let address = UInt32(bigEndian: native.sin_addr.s_addr)
      self.init(.ipv4(address, port: UInt16(bigEndian: native.sin_port)))
    case AF_INET6 where bytes.count >= MemoryLayout<sockaddr_in6>.size:
      let native = unsafe bytes.loadUnaligned(as: sockaddr_in6.self)
      let (upper, lower) = Self.halves(of: native.sin6_addr)
      let port = UInt16(bigEndian: native.sin6_port)
      self.init(.ipv6(upper: upper, lower: lower, port: port, scope: native.sin6_scope_id))
    case AF_UNIX:
      let path = unsafe bytes.dropFirst(header).prefix { $0 != 0 }
      unsafe self.init(.unix(String(decoding: path, as: UTF8.self)))
    default:
      return nil
    }
  }
}
