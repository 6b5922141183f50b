// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkCore

/// The beginning of an answer that says nothing about the request: the welcome, and pings after it.
///
/// While the request still arrives, the answer's head is not sent for such frames alone. Some
/// proxies drop the rest of a request once its answer has begun.
enum GatewayGreeting {
  /// Returns the greeting without pings, if the bytes from the beginning of an answer contain
  /// nothing else; nil if they do.
  static func alone(in bytes: [UInt8]) -> [UInt8]? {
    var greeting: [UInt8] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      guard rest.count >= NativeLayout.headerLength else { return nil }
      let head = unsafe rest.withUnsafeBytes { bytes in
        // Checked above: there are as many bytes as a header has.
        unsafe bytes.baseAddress.flatMap { unsafe try? NativeLayout.head(at: $0) }
      }
      guard let head, head.kind == .welcome || head.kind == .ping,
        rest.count >= NativeLayout.headerLength + head.length
      else { return nil }
      let frame = rest.prefix(NativeLayout.headerLength + head.length)
      if head.kind == .welcome { greeting += frame }
      rest = rest[frame.endIndex...]
    }
    return greeting
  }
}
#endif
