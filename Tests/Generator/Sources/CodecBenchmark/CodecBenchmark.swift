// SPDX-License-Identifier: Apache-2.0

import Corpus
import CorpusOfSwift
import Foundation
import LongLinkProtobufC
import SwiftProtobuf

/// Compares how fast the two runtimes encode and decode the message of five fields: `make
/// bench-codec`.
///
/// Both write the same bytes into an array and read them again, in turns that are much shorter than
/// what else a machine does. A ratio is that of two neighbouring turns; of all rounds the median
/// counts, so that a disturbance of some of them changes nothing.
@main
struct CodecBenchmark {
  private static let rounds = 1_000
  private static let messages = 1_000

  static func main() throws {
    let value = Five(
      id: 1_234_567_890_123, name: "a name of some length", payload: [UInt8](0..<64), kind: 42,
      weight: 0.5)
    let message = Corpus_Five.with {
      $0.id = value.id
      $0.name = value.name
      $0.payload = Data(value.payload)
      $0.kind = value.kind
      $0.weight = value.weight
    }
    let bytes = try value.encodedBytes()
    guard try message.serializedBytes() == bytes else {
      print("the runtimes write different bytes")
      return
    }
    var encoding = Comparison()
    var decoding = Comparison()
    for _ in 0..<rounds {
      encoding.add(
        try time { for _ in 0..<messages { consume(try value.encodedBytes().count) } },
        try time {
          for _ in 0..<messages {
            let encoded: [UInt8] = try message.serializedBytes()
            consume(encoded.count)
          }
        })
      decoding.add(
        try time {
          for _ in 0..<messages {
            consume(try unsafe Five(decoding: bytes.span.bytes).name.utf8.count)
          }
        },
        try time {
          for _ in 0..<messages {
            consume(try Corpus_Five(serializedBytes: bytes).name.utf8.count)
          }
        })
    }
    encoding.report("encode", perMessage: messages)
    decoding.report("decode", perMessage: messages)
    (encoding + decoding).report("both", perMessage: messages)
  }

  private static func time(_ body: () throws -> Void) rethrows -> Duration {
    try ContinuousClock().measure(body)
  }

  @inline(never)
  private static func consume(_ number: Int) {
    precondition(number >= 0)
  }
}

/// The times of both runtimes, round by round.
struct Comparison {
  private var values: [Duration] = []
  private var swift: [Duration] = []

  mutating func add(_ values: Duration, _ swift: Duration) {
    self.values.append(values)
    self.swift.append(swift)
  }

  static func + (first: Comparison, second: Comparison) -> Comparison {
    var sum = Comparison()
    sum.values = zip(first.values, second.values).map(+)
    sum.swift = zip(first.swift, second.swift).map(+)
    return sum
  }

  func report(_ name: String, perMessage count: Int) {
    func median(_ numbers: [Double]) -> Double { numbers.sorted()[numbers.count / 2] }
    func nanoseconds(_ times: [Duration]) -> Int {
      Int(median(times.map { $0 / .nanoseconds(count) }).rounded())
    }
    let ratio = median(zip(values, swift).map { $1 / $0 })
    print(
      "\(name): libprotobuf-c \(nanoseconds(values)) ns, SwiftProtobuf \(nanoseconds(swift)) ns, "
        + "\((ratio * 100).rounded() / 100) times as fast")
  }
}
