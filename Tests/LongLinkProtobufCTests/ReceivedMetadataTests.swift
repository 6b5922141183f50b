// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
import Testing

/// Metadata is checked without decoding its entries: the result must be the same.
@Suite struct ReceivedMetadataTests {
  @Test func `a block is checked as if all its entries were decoded`() throws {
    var generator = SeededGenerator(seed: 15)
    var errors: [BodyError.Code: Int] = [:]
    var accepted = 0
    for _ in 0..<100_000 {
      let block = randomBlock(using: &generator)
      let whole = Result { () throws(BodyError) in try Metadata(body: block) }
      let received = Result { () throws(BodyError) in
        // The span does not outlive the closure, nor the array.
        try unsafe ReceivedMetadata(block: block.span.bytes)
      }
      switch (whole, received) {
      case (.success(let whole), .success(let received)):
        accepted += 1
        let entries = whole.entries.map { ($0.key, $0.value) }
        let last = Dictionary(entries) { _, last in last }
        try #require(received.entries == last, "\(block)")
        try #require(received.remaining == whole.remaining, "\(block)")
        try #require(received.priority == whole.priority, "\(block)")
        try #require(received.idempotencyKey == whole.idempotencyKey, "\(block)")
        try #require(received.retryAfter == whole.retryAfter, "\(block)")
        try #require(received.credit == whole.credit, "\(block)")
        try #require(received.items == whole.items, "\(block)")
        try #require(received.interrupted == whole.interrupted, "\(block)")
        try #require(received.keySpace == whole.keySpace, "\(block)")
        try #require(received.keyTime == whole.keyTime, "\(block)")
        try #require(received.replayed == whole.replayed, "\(block)")
        let isPlain =
          whole.priority == 0 && whole.idempotencyKey.isEmpty && whole.entries.isEmpty
          && whole.keySpace == nil
        try #require(received.isPlain == isPlain, "\(block)")
      case (.failure(let expected), .failure(let error)):
        errors[expected.code, default: 0] += 1
        try #require(error == expected, "\(block)")
      case (let expected, let result):
        Issue.record("\(block): \(result) in place of \(expected)")
      }
    }
    // All sides of the check were met.
    #expect(accepted > 20_000)
    for code: BodyError.Code in [.malformed, .truncated, .wrongType, .invalidUTF8] {
      #expect(errors[code] ?? 0 > 1_000, "\(code)")
    }
  }

  /// Fields as they may stand in a block, some of them not as they should, and now and then cut.
  private func randomBlock(using generator: inout SeededGenerator) -> [UInt8] {
    var block = (0..<Int.random(in: 0...5, using: &generator)).flatMap { _ in
      switch generator.next() % 13 {
      case 0: [0x08] + varint(.random(in: 0...70_000, using: &generator))
      case 1: [0x10] + varint(.random(in: 0...3, using: &generator))
      case 2: field(3, randomText(using: &generator))
      case 3: [0x28] + varint(.random(in: 0...300, using: &generator))
      case 4: [0x30] + varint(.random(in: 0...70_000, using: &generator))
      case 5: [0x38] + varint(.random(in: 0...2, using: &generator))
      case 6:
        field(9, [UInt8](repeating: 7, count: [16, 16, 16, 0, 15, 17][Int(generator.next() % 6)]))
      case 7: [0x50] + varint(.random(in: 0...70_000, using: &generator))
      case 8: [0x58] + varint(.random(in: 0...2, using: &generator))
      default: field(4, randomEntry(using: &generator))
      }
    }
    if !block.isEmpty, generator.next() % 8 == 0 {
      block.removeLast(.random(in: 1...min(4, block.count), using: &generator))
    }
    if !block.isEmpty, generator.next() % 8 == 0 {
      let index = Int.random(in: block.indices, using: &generator)
      block[index] = UInt8(truncatingIfNeeded: generator.next())
    }
    return block
  }

  private func randomEntry(using generator: inout SeededGenerator) -> [UInt8] {
    var entry: [UInt8] = []
    for _ in 0..<Int.random(in: 0...3, using: &generator) {
      let value = Int.random(in: 0...200, using: &generator)
      switch generator.next() % 24 {
      case 0: entry += [0x08] + varint(value)
      case 1: entry += varint(.random(in: 0...200, using: &generator)) + varint(value)
      case 2: entry += [0x1D, 1, 2, 3, 4]
      case 3: entry += field(.random(in: 3...20, using: &generator), [0xFF])
      case let rest: entry += field(rest % 2 == 0 ? 1 : 2, randomText(using: &generator))
      }
    }
    return entry
  }

  private func randomText(using generator: inout SeededGenerator) -> [UInt8] {
    let length = Int.random(in: 0...9, using: &generator)
    switch generator.next() % 24 {
    case 0: return [UInt8](repeating: 0x61, count: length * 30)
    case 1: return [0x61, 0xFF]
    case 2: return [0xC3]
    case 3: return [0x61, 0, 0x62]
    case 4: return [UInt8]("ß語🜚".utf8)
    default: return [UInt8](repeating: 0x61, count: length)
    }
  }
}
