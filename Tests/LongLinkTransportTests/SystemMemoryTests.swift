// SPDX-License-Identifier: Apache-2.0

import LongLinkTransport
import Testing

#if canImport(Glibc)
import Glibc

@Suite struct SystemMemoryTests {
  /// Each runs in a process of its own, whose allocator nothing else has used.
  @Test func `large blocks are reused once there is a loop`() async {
    await #expect(processExitsWith: .success) {
      if Self.isSanitized { return }
      #expect(Self.isMapped(900_000), "glibc maps large blocks at first")
      let loop = try EventLoop(name: "memory")
      #expect(!Self.isMapped(900_000))
      loop.shutDown()
    }
  }

  @Test func `an application's own settings stay`() async {
    await #expect(processExitsWith: .success) {
      if Self.isSanitized { return }
      // mallopt(M_MMAP_THRESHOLD, 65_536), which the overlay lacks.
      typealias Option = @convention(c) (CInt, CInt) -> CInt
      let symbol = unsafe try #require(dlsym(nil, "mallopt"))
      #expect(unsafe unsafeBitCast(symbol, to: Option.self)(-3, 65_536) == 1)
      let loop = try EventLoop(name: "memory")
      #expect(Self.isMapped(900_000))
      loop.shutDown()
    }
  }

  /// Whether a sanitizer has replaced glibc's allocator, which this is about.
  private static var isSanitized: Bool {
    unsafe dlsym(nil, "__tsan_init") != nil || dlsym(nil, "__asan_init") != nil
  }

  /// Whether the allocator maps a block of this size by itself: a bit of the word in front of it.
  private static func isMapped(_ size: Int) -> Bool {
    guard let block = unsafe malloc(size) else { return false }
    defer { unsafe free(block) }
    return unsafe block.load(fromByteOffset: -MemoryLayout<UInt>.size, as: UInt.self) & 2 != 0
  }
}
#endif
