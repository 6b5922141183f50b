// SPDX-License-Identifier: Apache-2.0

import CLongLinkReaders
import Testing

/// The code that looks at 64 bytes at once against the code that looks at one.
@Suite struct JSONSkipTests {
  private typealias Skip = (
    UnsafeMutablePointer<cll_json_place>?, UnsafePointer<UInt8>?, Int, Int
  ) -> Int

  private func run(_ skip: Skip, _ bytes: [UInt8], _ cuts: [Int]) -> [Int] {
    var place = cll_json_place()
    var start = 0
    for cut in cuts + [bytes.count] where cut >= start {
      let count = unsafe bytes.withUnsafeBufferPointer { bytes in
        unsafe skip(&place, bytes.baseAddress! + start, cut - start, 8)
      }
      start += count
      if place.has_ended || place.is_too_deep || start < cut { break }
    }
    return [
      start, place.depth, place.is_in_string ? 1 : 0, place.is_escaped ? 1 : 0,
      place.has_ended ? 1 : 0, place.is_too_deep ? 1 : 0,
    ]
  }

  @Test(arguments: 0..<400)
  func `both find the same end`(seed: UInt64) {
    var chance = Chance(seed: seed)
    // Some inputs have many strings, others many brackets.
    let alphabets = [
      #"""\\{}[] ax"#, #"{}[]"{[ "#, #"""\ \\\\x"#, #"abcdefghijklmnopqrstuvwxyz0123456789,:"{}"#,
    ]
    let alphabet = Array(alphabets[Int(seed % 4)].utf8)
    let count = Int.random(in: 1...400, using: &chance)
    let first = Array("{[\"".utf8).randomElement(using: &chance) ?? 0x7B
    let bytes = [first] + (0..<count).map { _ in alphabet.randomElement(using: &chance) ?? 0 }
    let whole = unsafe run(cll_json_skip_portable, bytes, [])
    #expect(unsafe run(cll_json_skip, bytes, []) == whole)
    for _ in 0..<8 {
      let cuts = (0..<4).map { _ in Int.random(in: 0...count, using: &chance) }.sorted()
      #expect(unsafe run(cll_json_skip, bytes, cuts) == whole)
      #expect(unsafe run(cll_json_skip_portable, bytes, cuts) == whole)
    }
  }
}
