import Corpus
import CorpusOfSwift
import Foundation
import LongLinkProtobufC
import SwiftProtobuf

/// Compares how fast the two runtimes encode and decode the message of five fields.
///
///     swift run -c release CodecBenchmark
///
/// Both do the same work in turns, so that a busy machine slows both; of each the best turn counts.
@main
struct CodecBenchmark {
  static func main() throws {
    let count = 20_000
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
    var best = Times()
    for _ in 0..<40 {
      best.take(
        encoding: try time { for _ in 0..<count { consume(try value.encodedBytes().count) } },
        decoding: try time {
          for _ in 0..<count {
            consume(try unsafe Five(decoding: bytes.span.bytes).name.utf8.count)
          }
        },
        swiftEncoding: try time {
          for _ in 0..<count {
            let encoded: [UInt8] = try message.serializedBytes()
            consume(encoded.count)
          }
        },
        swiftDecoding: try time {
          for _ in 0..<count {
            consume(try Corpus_Five(serializedBytes: bytes).name.utf8.count)
          }
        })
    }
    best.report(perMessage: count)
  }

  private static func time(_ body: () throws -> Void) rethrows -> Duration {
    try ContinuousClock().measure(body)
  }

  @inline(never)
  private static func consume(_ number: Int) {
    precondition(number >= 0)
  }
}

struct Times {
  private var encoding = Duration.seconds(3_600)
  private var decoding = Duration.seconds(3_600)
  private var swiftEncoding = Duration.seconds(3_600)
  private var swiftDecoding = Duration.seconds(3_600)

  mutating func take(
    encoding: Duration, decoding: Duration, swiftEncoding: Duration, swiftDecoding: Duration
  ) {
    self.encoding = min(self.encoding, encoding)
    self.decoding = min(self.decoding, decoding)
    self.swiftEncoding = min(self.swiftEncoding, swiftEncoding)
    self.swiftDecoding = min(self.swiftDecoding, swiftDecoding)
  }

  func report(perMessage count: Int) {
    func row(_ name: String, _ ours: Duration, _ theirs: Duration) {
      let nanoseconds = (ours / .nanoseconds(count), theirs / .nanoseconds(count))
      print(
        "\(name): libprotobuf-c \(Int(nanoseconds.0)) ns, SwiftProtobuf \(Int(nanoseconds.1)) ns, "
          + "\(Double(Int(nanoseconds.1 / nanoseconds.0 * 100)) / 100) times as fast")
    }
    row("encode", encoding, swiftEncoding)
    row("decode", decoding, swiftDecoding)
    row("both", encoding + decoding, swiftEncoding + swiftDecoding)
  }
}
