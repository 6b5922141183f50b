// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
import LongLinkDemoMessages
import LongLinkProtobufC
import Testing

/// Anything may come from the network; under the address sanitizer these find reads out of bounds
/// and leaks as well.
@Suite struct HostileTests {
  @Test(arguments: Sample.all)
  func `a body cut anywhere gives a value or an error`(_ sample: Sample) throws {
    for end in sample.body.indices {
      let isValue = try? sample.isValue(Array(sample.body[..<end]))
      #expect(isValue != true)
    }
  }

  @Test(arguments: Sample.all)
  func `any flipped bit gives a value that can be written or an error`(_ sample: Sample) throws {
    for index in sample.body.indices {
      for bit in 0..<8 {
        var body = sample.body
        body[index] ^= 1 << bit
        try expectStable(sample, body)
      }
    }
  }

  @Test func `random bodies give a value that can be written or an error`() throws {
    var generator = SeededGenerator(seed: 2)
    var accepted = 0
    for _ in 0..<100_000 {
      let sample = Sample.all.randomElement(using: &generator) ?? .hello
      if try expectStable(sample, randomBody(near: sample, using: &generator)) { accepted += 1 }
    }
    // Neither side of the check is empty.
    #expect((10_000..<90_000).contains(accepted))
  }

  /// What is read from any body is read again, unchanged, from the body that it is written as.
  @discardableResult
  private func expectStable(_ sample: Sample, _ body: [UInt8]) throws -> Bool {
    do {
      let once = try sample.rewrite(body)
      #expect(try sample.rewrite(once) == once)
      return true
    } catch is BodyError {
      return false
    }
  }

  /// Noise, or fields of the sample's message with noise in them, or a damaged copy.
  private func randomBody(
    near sample: Sample,
    using generator: inout SeededGenerator
  ) -> [UInt8] {
    let count = Int.random(in: 0...24, using: &generator)
    let noise = (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    switch generator.next() % 4 {
    case 0:
      return noise
    case 1:
      return field(.random(in: 1...45, using: &generator), noise)
    case 2:
      return (0..<4).flatMap { _ in
        varint(.random(in: 8...360, using: &generator))
          + varint(.random(in: 0...9, using: &generator)) + noise.prefix(4)
      }
    default:
      var body = sample.body
      for _ in 0..<3 {
        let index = Int.random(in: body.indices, using: &generator)
        body[index] = UInt8(truncatingIfNeeded: generator.next())
      }
      return body
    }
  }
}
