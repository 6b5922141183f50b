// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTesting
import Testing

/// The bytes of scripted frames, which must be right where they are not meant to be wrong.
@Suite struct WireFrameTests {
  @Test func `a request has the right bytes on the wire`() {
    // The checksum is what zlib makes of these bytes.
    let frame = WireFrame.request(7, serial: 50, [1, 2, 3])
    #expect(
      frame.bytes == [
        0, 0, 0, 7, 0, 0, 0, 50, 0, 0, 0, 3, 0x02, 0x09, 0x00, 0x43, 1, 2, 3,
      ]
    )
  }

  @Test func `the core reads what is written, and finds what was damaged`() throws {
    let frames: [WireFrame] = [
      .request(0xFF_FFFF, serial: 50, [1], metadata: WireMetadata(priority: 1)),
      .response(to: 0x8000_0032, code: 1_000, isRefused: true, [1, 2]),
      .push(3), .ping([1]), .pong(), .cancel(51), .hello(name: "a"), .welcome(), .goAway(),
      WireFrame(.request, tag: 1, serial: 52, moreFollows: true, body: [9]),
    ]
    for frame in frames {
      let head = try head(of: frame.bytes)
      #expect(head.kind.rawValue == frame.kind.rawValue)
      #expect(head.tag == frame.tag)
      #expect(head.serial == frame.serial)
      #expect(head.length == frame.body.count)
      #expect(head.flags.contains(.more) == frame.moreFollows)
      #expect(head.flags.contains(.metadata) == frame.hasMetadata)
      #expect(isIntact(frame.bytes))
      #expect(!isIntact(frame.corruptBytes))
    }
  }

  private func head(of bytes: [UInt8]) throws -> FrameHead {
    // The bytes of a frame hold its header.
    try unsafe bytes.withUnsafeBytes { bytes in
      try unsafe NativeLayout.head(at: bytes.baseAddress!)
    }
  }

  private func isIntact(_ bytes: [UInt8]) -> Bool {
    // The bytes of a frame hold its header and all of its body.
    unsafe bytes.withUnsafeBytes { bytes in
      unsafe NativeLayout.isIntact(at: bytes.baseAddress!, length: bytes.count - 16)
    }
  }

  @Test func `metadata comes back as it was given`() {
    let metadata = WireMetadata(
      remaining: .zero,
      priority: 9,
      idempotencyKey: [1],
      entries: ["k": "v", "a": "ü"],
      retryAfter: .milliseconds(20)
    )
    let frame = WireFrame.request(1, serial: 50, [7, 8], metadata: metadata)
    #expect(frame.metadata == metadata)
    #expect(frame.payload == [7, 8])
    #expect(WireFrame.request(1, serial: 50, [7, 8]).metadata == nil)
  }

  @Test func `metadata that lies about its length is no metadata`() {
    let frame = WireFrame(.request, tag: 1, serial: 50, hasMetadata: true, body: [0, 9, 1])
    #expect(frame.metadata == nil)
    #expect(frame.payload == [0, 9, 1])
  }

  @Test(arguments: [1, 7, 64, 1_000])
  func `fragments hold the whole body once`(size: Int) {
    let body = (0..<64).map { UInt8($0) }
    let frame = WireFrame.response(to: 50, body, metadata: WireMetadata(priority: 1))
    let fragments = frame.fragments(of: size)
    #expect(fragments.flatMap(\.body) == frame.body)
    #expect(fragments.map(\.moreFollows).firstIndex(of: false) == fragments.count - 1)
    #expect(fragments.map(\.hasMetadata).lastIndex(of: true) == 0)
    #expect(fragments.allSatisfy { $0.body.count <= size && $0.serial == 50 })
  }
}
