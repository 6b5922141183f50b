// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkCore

/// The frames of an answer that say nothing about the request: the welcome, and pings behind it.
///
/// The head of the answer does not leave for them while the request still arrives. Some proxies
/// drop the rest of a request once its answer has begun.
enum GatewayGreeting {
  /// The greeting that bytes from the beginning of an answer consist of, without its pings; nil if
  /// there is more in them.
  static func alone(in bytes: [UInt8]) -> [UInt8]? {
    var greeting: [UInt8] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      guard rest.count >= NativeLayout.headerLength else { return nil }
      let head = unsafe rest.withUnsafeBytes { bytes in
        // There are as many bytes as a header has.
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
