// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

// What a script does in a stream. Nothing here checks the client's credit, or whether the request
// asked for items, so a script can also break these rules.
extension ServerAction {
  /// Sends an item, in frames of at most `size` bytes of body.
  ///
  /// If the response was sent before, the item is late. A `size` above 65,536 lets you send a frame
  /// that is too large, which is a violation. A `size` below 1 traps.
  public static func item(_ body: [UInt8] = [], inFragmentsOf size: Int = 65_536) -> ServerAction {
    ServerAction(step: .frames { WireFrame.item($0.serial, body).fragments(of: size) })
  }

  /// Sends an encoded message as an item. A message that cannot be encoded traps.
  public static func item(encoding message: some BodyEncodable) -> ServerAction {
    item(message.wireBytes)
  }

  /// Sends several items, each in frames of at most 65,536 bytes of body.
  public static func items(_ bodies: [[UInt8]]) -> ServerAction {
    sequence(bodies.map { item($0) })
  }

  /// Sends the first `count` bytes of an item, as a fragment that is never continued.
  ///
  /// After it, the connection can end, or the stream fail, in the middle of an item.
  public static func partialItem(_ body: [UInt8], bytes count: Int) -> ServerAction {
    frame { request in
      var frame = WireFrame.item(request.serial, Array(body.prefix(count)))
      frame.moreFollows = true
      return frame
    }
  }

  /// Sends the first `count` bytes of an item's frame, including the header of 16 bytes, and closes
  /// the connection.
  public static func cutItem(_ body: [UInt8], afterBytes count: Int) -> ServerAction {
    ServerAction(step: .all([.cut({ .item($0.serial, body) }, count), .close]))
  }

  /// Grants the client credit for further items, in bytes.
  public static func credit(_ bytes: UInt32) -> ServerAction {
    frame { .credit($0.serial, bytes) }
  }

  /// Delays the later actions of its ``ServerAction/sequence(_:)`` for a time, by the clock of the
  /// server's loop. Outside of a sequence it does nothing.
  public static func pause(_ time: Duration) -> ServerAction {
    ServerAction(step: .pause(time.clampedNanoseconds))
  }

  /// Delays the later actions of its ``ServerAction/sequence(_:)`` until a condition holds for the
  /// request's stream. Outside of a sequence it does nothing.
  ///
  /// The condition is checked at once and after each frame of the stream, on the server's loop, and
  /// must not block. If it never holds, for example because the request opens no stream, the later
  /// actions are never performed.
  public static func wait(
    until condition: @escaping @Sendable (ReceivedStream) -> Bool
  ) -> ServerAction {
    ServerAction(step: .wait(condition))
  }
}
