// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// The reaction of a ``SimulatedServer`` to a request: a correct one, or one of many wrong ones.
public struct ServerAction: Sendable {
  indirect enum Step: Sendable {
    case nothing
    case frames(@Sendable (ReceivedMessage) -> [WireFrame])
    case raw(@Sendable (ReceivedMessage) -> [UInt8])
    case ownCode(UInt32, [UInt8])
    case corrupt(@Sendable (ReceivedMessage) -> WireFrame)
    case cut(@Sendable (ReceivedMessage) -> WireFrame, Int)
    case dribble(@Sendable (ReceivedMessage) -> WireFrame, every: Int64)
    case ask(MessageType, [UInt8])
    case goAway(@Sendable (_ requestsAccepted: UInt64) -> WireFrame)
    case end
    case endBelow
    case rawBelow([UInt8])
    case close
    case reset
    case stopReading
    case freeze
    case delay(Int64, Step)
    case pause(Int64)
    case wait(@Sendable (ReceivedStream) -> Bool)
    case all([Step])
    case hold(count: Int, Order, Step)
  }

  /// The order in which the actions of ``ServerAction/hold(untilThereAre:order:_:)`` are performed.
  public enum Order: Hashable, Sendable {
    /// In the order of the requests.
    case asReceived
    /// The last request first.
    case reversed
    /// In a random order. In a simulation, the seed determines it.
    case shuffled
  }

  let step: Step

  // MARK: Responses

  /// Responds with 200 and a body.
  public static func reply(
    _ body: [UInt8] = [],
    metadata: WireMetadata? = nil
  ) -> ServerAction {
    reply(code: .ok, body: body, metadata: metadata)
  }

  /// Responds with 200 and a text in UTF-8 as the body.
  public static func reply(text: String) -> ServerAction {
    reply(Array(text.utf8))
  }

  /// Responds with 200 and an encoded message as the body. A message that cannot be encoded traps.
  public static func reply(encoding message: some BodyEncodable) -> ServerAction {
    reply(message.wireBytes)
  }

  /// Responds with any code and body, like a handler that has run.
  public static func reply(
    code: ResponseCode,
    body: [UInt8] = [],
    metadata: WireMetadata? = nil
  ) -> ServerAction {
    frame { .response(to: $0.serial, code: code, body, metadata: metadata) }
  }

  /// Responds with a number that is sent as the dialect's own code, without translation. In the
  /// native protocol, the code is 200.
  public static func reply(dialectCode: UInt32, body: [UInt8] = []) -> ServerAction {
    ServerAction(step: .ownCode(dialectCode, body))
  }

  /// Responds with 200 and a body, in fragments of at most `size` bytes. A `size` below 1 traps.
  public static func replyInFragments(_ body: [UInt8], of size: Int) -> ServerAction {
    ServerAction(step: .frames { WireFrame.response(to: $0.serial, body).fragments(of: size) })
  }

  /// Refuses the request with a code and a text as the body: the response states that no handler
  /// was called.
  public static func refuse(
    _ code: ResponseCode,
    _ detail: String = "",
    metadata: WireMetadata? = nil
  ) -> ServerAction {
    let body = Array(detail.utf8)
    return frame {
      .response(to: $0.serial, code: code, isRefused: true, body, metadata: metadata)
    }
  }

  /// Does nothing, so that the request gets no response.
  public static let never = ServerAction(step: .nothing)

  // MARK: Wrong responses

  /// Sends the same response twice, with 200 and a body.
  public static func replyTwice(_ body: [UInt8] = []) -> ServerAction {
    ServerAction(step: .frames { Array(repeating: .response(to: $0.serial, body), count: 2) })
  }

  /// Responds with 200 and a wrong serial: the request's plus `difference`.
  public static func wrongSerial(
    _ body: [UInt8] = [],
    difference: UInt32 = 1_000_000
  ) -> ServerAction {
    frame { .response(to: $0.serial &+ difference, body) }
  }

  /// Responds with 200 and a wrong checksum. In a dialect without checksums, the last byte is
  /// wrong.
  public static func corruptChecksum(_ body: [UInt8] = []) -> ServerAction {
    ServerAction(step: .corrupt { .response(to: $0.serial, body) })
  }

  /// Sends the first `count` bytes of the frame of a response with 200, header included, and closes
  /// the connection.
  public static func cutFrame(_ body: [UInt8] = [], afterBytes count: Int) -> ServerAction {
    ServerAction(step: .all([.cut({ .response(to: $0.serial, body) }, count), .close]))
  }

  /// Responds with 200, one byte of the frame at a time, with `interval` between two bytes by the
  /// clock of the server's loop. Later output waits until the last byte has been written.
  public static func dribble(_ body: [UInt8] = [], every interval: Duration) -> ServerAction {
    ServerAction(
      step: .dribble(
        { .response(to: $0.serial, body) },
        every: interval.clampedNanoseconds
      )
    )
  }

  // MARK: Other actions

  /// Sends the frame that the closure makes from the request. The closure runs on the server's loop
  /// and must not block.
  public static func frame(
    _ make: @escaping @Sendable (ReceivedMessage) -> WireFrame
  ) -> ServerAction {
    ServerAction(step: .frames { [make($0)] })
  }

  /// Sends the bytes that the closure makes from the request. The closure runs on the server's loop
  /// and must not block.
  public static func raw(
    _ make: @escaping @Sendable (ReceivedMessage) -> [UInt8]
  ) -> ServerAction {
    ServerAction(step: .raw(make))
  }

  /// Sends bytes unchanged on the request's connection.
  public static func raw(_ bytes: [UInt8]) -> ServerAction {
    raw { _ in bytes }
  }

  /// Pushes a message on the request's connection.
  public static func push(_ type: MessageType, _ body: [UInt8] = []) -> ServerAction {
    frame { _ in .push(type, body) }
  }

  /// Sends a request to the client on the request's connection. ``PeerRecord/responses`` of the
  /// server has the response. Traps in a dialect in which servers cannot send requests.
  public static func ask(_ type: MessageType, _ body: [UInt8] = []) -> ServerAction {
    ServerAction(step: .ask(type, body))
  }

  /// Sends a goaway on the request's connection. It contains the number of requests received on
  /// that connection.
  public static func goAway(
    code: ResponseCode = .draining,
    reason: String = "",
    spread: Duration? = nil,
    retryAfter: Duration? = nil,
    alternatives: [String] = []
  ) -> ServerAction {
    ServerAction(
      step: .goAway { accepted in
        .goAway(
          code: code,
          reason: reason,
          requestsAccepted: accepted,
          spread: spread,
          retryAfter: retryAfter,
          alternatives: alternatives
        )
      }
    )
  }

  /// Ends the server's side of the connection after earlier output. Reading continues.
  public static let end = ServerAction(step: .end)

  /// Closes the connection after earlier output.
  public static let close = ServerAction(step: .close)

  /// Resets the connection after earlier output has been passed to the system.
  ///
  /// On Unix-domain sockets, which have no resets, the peer gets an end.
  public static let reset = ServerAction(step: .reset)

  /// Stops reading from the connection, so that pings get no pongs, until
  /// ``SimulatedServer/resumeReading()``.
  public static let stopReading = ServerAction(step: .stopReading)

  /// Freezes the whole server, like ``SimulatedServer/freeze()``.
  public static let freeze = ServerAction(step: .freeze)

  // MARK: Combined actions

  /// Performs an action after a time, by the clock of the server's loop. A negative time is 0.
  public static func delay(_ time: Duration, then action: ServerAction) -> ServerAction {
    ServerAction(step: .delay(time.clampedNanoseconds, action.step))
  }

  /// Performs actions in order. A `delay` among them delays only its own action; a `pause` or
  /// `wait` delays all later ones.
  public static func sequence(_ actions: [ServerAction]) -> ServerAction {
    ServerAction(step: .all(actions.map(\.step)))
  }

  /// Holds an action until `count` requests of its type are held on the connection, and then
  /// performs all of them in the given order. A `count` below 1 traps.
  ///
  /// ``SimulatedServer/releaseHeld()`` performs held actions before that.
  public static func hold(
    untilThereAre count: Int,
    order: Order = .reversed,
    _ action: ServerAction
  ) -> ServerAction {
    precondition(count > 0, "count has to be at least 1")
    return ServerAction(step: .hold(count: count, order, action.step))
  }
}
