// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// The layout of the native protocol, header by header.
enum NativeFuzz {
  static func run(_ bytes: [UInt8]) throws {
    var frame = bytes
    guard frame.count >= NativeLayout.headerLength else { return }
    let length = frame.count - NativeLayout.headerLength
    do {
      // The array holds a header, and with it as much body as `length` says.
      let head = try unsafe frame.withUnsafeBytes { bytes in
        try unsafe NativeLayout.head(at: bytes.baseAddress!)
      }
      try check(head, length, &frame)
    } catch let error as Violation {
      let isKnown = error.rule == .unknownKind && error.kind.flatMap(FrameKind.init(wire:)) == nil
      try expect(isKnown, "a header broke \(error)")
    }
  }

  /// What is written is read again, and any other bit is noticed.
  private static func check(
    _ read: FrameHead, _ length: Int, _ frame: inout [UInt8]
  ) throws(FuzzFailure) {
    var head = read
    head.length = length
    let isRight = unsafe frame.withUnsafeMutableBytes { bytes -> Bool in
      // As above.
      let start = bytes.baseAddress!
      unsafe NativeLayout.seal(head, at: start)
      guard unsafe NativeLayout.isIntact(at: start, length: length),
        (try? unsafe NativeLayout.head(at: start)).map({ $0.kind == head.kind }) == true
      else { return false }
      let place = Int(head.serial) % bytes.count
      unsafe bytes[place] ^= 1 << (head.tag % 8)
      return unsafe !NativeLayout.isIntact(at: start, length: length)
    }
    try expect(isRight, "a sealed frame is not intact, or a damaged one is")
  }
}
