// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
import LongLinkDemoMessages
import LongLinkProtobufC
import LongLinkUploadMessages

/// Messages: whatever can be read can be written, and is then the same.
enum BodyFuzz {
  static func run(_ bytes: [UInt8]) throws {
    guard let choice = bytes.first else { return }
    let body = Array(bytes.dropFirst())
    switch choice % 13 {
    case 0: try check(Hello.self, body)
    case 1: try check(Welcome.self, body)
    case 2: try check(GoAway.self, body)
    // Of a key that comes more than once the last alone is written, and keys in their order.
    case 3: try check(Metadata.self, body) { $0.entries = $0.canonicalEntries }
    case 4: try check(SleepRequest.self, body)
    case 5: try check(TicksRequest.self, body)
    case 6: try check(Tick.self, body)
    case 7: try check(FailRequest.self, body)
    case 8: try check(StatsReply.self, body)
    case 9: try check(StoredUpload.self, body)
    case 10: try check(StatusRequest.self, body)
    case 11: try check(StatusResponse.self, body)
    default: try check(StoredFinish.self, body)
    }
  }

  private static func check<Message: BodyEncodable & BodyDecodable & Equatable>(
    _ type: Message.Type, _ body: [UInt8], _ normalize: (inout Message) -> Void = { _ in }
  ) throws {
    var message: Message
    do throws(BodyError) {
      message = try unsafe Message(decoding: body.span.bytes)
    } catch {
      return
    }
    normalize(&message)
    let written = try message.encodedBytes()
    let again = try unsafe Message(decoding: written.span.bytes)
    try expect(again == message, "\(type) has changed on its way")
    let twice = try again.encodedBytes()
    try expect(twice.count == written.count, "\(type) is written in two ways")
  }
}
