// SPDX-License-Identifier: Apache-2.0

import Testing
import LongLinkDriver
import LongLinkCore
import LongLinkDemoMessages
import LongLinkProtobufC

/// A value, and the body that `protoc --encode` (3.21) made of the same fields.
struct Sample: Sendable, CustomTestStringConvertible {
  let name: String
  let body: [UInt8]
  /// Reads a body and writes what was read.
  let rewrite: @Sendable ([UInt8]) throws -> [UInt8]
  /// Whether a body reads as the value.
  let isValue: @Sendable ([UInt8]) throws -> Bool
  /// The value's body, and the size it says that its body has.
  let encode: @Sendable () throws -> (body: [UInt8], count: Int)

  init<Value: BodyEncodable & BodyDecodable & Equatable & Sendable>(_ value: Value, _ hex: String) {
    name = "\(Value.self)"
    body = bytes(hex)
    rewrite = { body in try Value(body: body).encodedBytes() }
    isValue = { body in try Value(body: body) == value }
    encode = { (try value.encodedBytes(), try value.encodedByteCount) }
  }

  var testDescription: String { name }
}

extension Sample {
  static let all = [hello, welcome, goAway, metadata, noTimeLeft] + demo + [probe]

  static let hello = Sample(
    Hello(
      version: 1,
      features: 31,
      maxBody: 16_777_216,
      maxInFlight: 1024,
      heartbeatInterval: 30_000,
      heartbeatTimeout: 10_000,
      credential: [0, 0xff, 0x80],
      name: "grüße",
      clientID: ClientID([UInt8](0...15))
    ),
    """
    0801101f188080800820800828b0ea0130904e3a0300ff8042076772c3bcc39f65621000010203040506070809\
    0a0b0c0d0e0f
    """
  )

  static let welcome = Sample(
    Welcome(
      version: 1,
      features: 3,
      maxBody: 1,
      maxInFlight: .max,
      heartbeatInterval: 15_000,
      heartbeatTimeout: 5_000,
      name: "eu-1"
    ),
    "08011003180120ffffffff0f2898753088274a0465752d31"
  )

  static let goAway = Sample(
    GoAway(
      code: 503,
      reason: "draining",
      requestsAccepted: 300,
      spread: 5_000,
      retryAfter: 1_000,
      alternatives: ["a:9000", "", "[::1]:9001"]
    ),
    "08f7031208647261696e696e6718ac0220882728e8073206613a393030303200320a5b3a3a315d3a39303031"
  )

  static let metadata = Sample(
    Metadata(
      remaining: 1_500,
      priority: 7,
      idempotencyKey: Array("key".utf8),
      entries: [.init(key: "a", value: "1"), .init(key: "b", value: "2")],
      retryAfter: 250
    ),
    "08dc0b10071a036b657922060a016112013122060a016212013228fa01"
  )

  static let noTimeLeft = Sample(Metadata(remaining: 0), "0800")

  static let demo = [
    Sample(SleepRequest(milliseconds: 250), "08fa01"),
    Sample(
      TicksRequest(count: 3, intervalMilliseconds: 1_000, messageType: 0xff_ffff),
      "080310e80718ffffff07"
    ),
    Sample(Tick(number: .max), "08ffffffffffffffffff01"),
    Sample(
      FailRequest(code: 1_404, detail: "no such thing: 無"),
      "08fc0a12126e6f2073756368207468696e673a20e784a1"
    ),
    Sample(
      StatsReply(
        connections: 1,
        requestsReceived: 128,
        requestsRunning: 2,
        requestsCancelled: 3,
        responsesSent: 16_384,
        protocolViolations: 1
      ),
      "080110800118022003288080013001"
    ),
  ]

  static let probe = Sample(
    Probe(
      i32: -1,
      i64: -2,
      u32: 3,
      u64: 4,
      s32: -5,
      s64: -6,
      f32: 7,
      f64: 8,
      sf32: -9,
      sf64: -10,
      single: 1.5,
      twice: -2.25,
      flag: true,
      text: "täxt",
      blob: [0, 1],
      colour: 2,
      inner: [Probe(u32: 9, inner: [Probe(text: "deep")])],
      packed: [1, 300],
      unpacked: [1, 300],
      fixed: [1, 2],
      texts: ["a", ""],
      blobs: [[], [0]],
      probes: [Probe(), Probe(u32: 1)],
      flags: [true, false],
      choice: .text(""),
      names: [.init(key: 2, value: "two")]
    ),
    """
    08ffffffffffffffffff0110feffffffffffffffff01180320042809300b3d070000004108000000000000004d\
    f7ffffff51f6ffffffffffffff5d0000c03f6100000000000002c06801720574c3a478747a0200018001028a01\
    0b18098a010672046465657092010301ac029801019801ac02a2011001000000000000000200000000000000aa\
    010161aa0100b20100b2010100ba0100ba01021801c201020100fa0100c202070802120374776f
    """
  )
}
