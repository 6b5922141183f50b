// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
import LongLinkDemoMessages
import LongLinkProtobufC
import Testing

@Suite struct SampleTests {
  @Test(arguments: Sample.all)
  func `a value is written as protoc writes it`(_ sample: Sample) throws {
    let (body, count) = try sample.encode()
    #expect(body == sample.body)
    #expect(count == sample.body.count)
  }

  @Test(arguments: Sample.all)
  func `what protoc writes is read as the value`(_ sample: Sample) throws {
    #expect(try sample.isValue(sample.body))
  }

  @Test func `a default value has no bytes and comes from none`() throws {
    #expect(try Hello().encodedBytes() == [])
    #expect(try Welcome().encodedBytes() == [])
    #expect(try GoAway().encodedBytes() == [])
    #expect(try Metadata().encodedBytes() == [])
    #expect(try Probe().encodedBytes() == [])
    #expect(try Hello(body: []) == Hello())
    #expect(try Metadata(body: []) == Metadata())
    #expect(try Probe(body: []) == Probe())
  }

  @Test func `no time left is not the same as no deadline`() throws {
    #expect(try Metadata(body: bytes("0800")).remaining == 0)
    #expect(try Metadata(body: []).remaining == nil)
  }

  @Test func `entries are written by the bytes of their keys, the last of a key alone`() throws {
    let metadata = Metadata(entries: [
      .init(key: "b", value: "1"), .init(key: "é", value: "composed"),
      .init(key: "a", value: "2"), .init(key: "e\u{301}", value: "decomposed"),
      .init(key: "b", value: "3"),
    ])
    let expected: [Metadata.Entry] = [
      .init(key: "a", value: "2"), .init(key: "b", value: "3"),
      .init(key: "e\u{301}", value: "decomposed"), .init(key: "é", value: "composed"),
    ]
    let body = try metadata.encodedBytes()
    #expect(try Metadata(body: body).entries.map(\.key.utf8.count) == [1, 1, 3, 2])
    #expect(try Metadata(body: body).entries == expected)
    #expect(body == (try Metadata(entries: expected).encodedBytes()))
  }

  @Test func `entries are read in any order, the last of a key alone`() throws {
    let body = bytes("22060a0162120132 22060a0161120131 22060a0162120133 2200")
    let expected: [Metadata.Entry] = [
      .init(key: "", value: ""), .init(key: "a", value: "1"), .init(key: "b", value: "3"),
    ]
    #expect(try Metadata(body: body).canonicalEntries == expected)
    let received = try unsafe ReceivedMetadata(block: body.span.bytes)
    #expect(received.entries == ["": "", "a": "1", "b": "3"])
    #expect(!received.isPlain)
  }

  @Test(arguments: ["2203 0a01ff", "2203 120100", "2205 0a0162 1205", "22ff", "2203 080102"])
  func `entries are checked before they are accessed`(_ hex: String) {
    #expect(throws: BodyError.self) {
      try unsafe ReceivedMetadata(block: bytes(hex).span.bytes)
    }
  }

  @Test func `random values come back as they were`() throws {
    var generator = SeededGenerator(seed: 8)
    for _ in 0..<150 {
      let probe = Probe.random(depth: 2, using: &generator)
      let body = try probe.encodedBytes()
      let count = try probe.encodedByteCount
      #expect(body.count == count)
      #expect(try Probe(body: body) == probe)
    }
  }
}

extension Probe {
  static func random(depth: Int, using generator: inout SeededGenerator) -> Probe {
    var probe = Probe()
    probe.i32 = .random(in: .min ... .max, using: &generator)
    probe.s64 = .random(in: -100...100, using: &generator)
    probe.f64 = .random(in: 0...1, using: &generator)
    probe.twice = .random(in: -1...1, using: &generator)
    probe.flag = .random(using: &generator)
    probe.text = randomText(using: &generator)
    probe.colour = .random(in: -3...3, using: &generator)
    probe.packed = (0..<Int.random(in: 0...20, using: &generator)).map { UInt32($0 * $0 * 977) }
    probe.blobs = (0..<Int.random(in: 0...3, using: &generator)).map { count in
      (0..<count * 350).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    }
    probe.flags = (0..<Int.random(in: 0...3, using: &generator)).map { $0 == 1 }
    probe.texts = (0..<Int.random(in: 0...3, using: &generator)).map { _ in
      randomText(using: &generator)
    }
    guard depth > 0 else { return probe }
    if Bool.random(using: &generator) {
      probe.inner = [random(depth: depth - 1, using: &generator)]
    }
    probe.probes = (0..<Int.random(in: 0...2, using: &generator)).map { _ in
      random(depth: depth - 1, using: &generator)
    }
    switch generator.next() % 4 {
    case 0: probe.choice = .number(.random(in: 0...2, using: &generator))
    case 1: probe.choice = .text(randomText(using: &generator))
    case 2: probe.choice = .probe([random(depth: depth - 1, using: &generator)])
    default: break
    }
    return probe
  }

  private static func randomText(using generator: inout SeededGenerator) -> String {
    let letters: [Character] = ["a", "ß", "語", "🜚", " ", "\u{1}", "\u{7f}"]
    let count = Int.random(in: 0...40, using: &generator)
    return String((0..<count).map { _ in letters.randomElement(using: &generator) ?? "a" })
  }
}
