// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// What a ``SimulatedServer`` does about a request: the right thing, or one of many wrong ones.
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
    case close
    case reset
    case stopReading
    case freeze
    case delay(Int64, Step)
    case all([Step])
    case hold(count: Int, Order, Step)
  }

  /// In which order answers leave that were held back.
  public enum Order: Hashable, Sendable {
    /// As the requests came.
    case asReceived
    /// The last request first.
    case reversed
    /// In an order that the loop's chance determines: in a simulation, its seed.
    case shuffled
  }

  let step: Step

  // MARK: Answers

  /// Answers 200 with a body.
  public static func reply(
    _ body: [UInt8] = [],
    metadata: WireMetadata? = nil
  ) -> ServerAction {
    reply(code: .ok, body: body, metadata: metadata)
  }

  /// Answers 200 with a text in UTF-8.
  public static func reply(text: String) -> ServerAction {
    reply(Array(text.utf8))
  }

  /// Answers 200 with a message. One that has no encoding is a programming error.
  public static func reply(encoding message: some BodyEncodable) -> ServerAction {
    reply(message.wireBytes)
  }

  /// Answers with any code and body, as a handler would that has run.
  public static func reply(
    code: ResponseCode,
    body: [UInt8] = [],
    metadata: WireMetadata? = nil
  ) -> ServerAction {
    frame { .response(to: $0.serial, code: code, body, metadata: metadata) }
  }

  /// Answers with a dialect's own code and a body; in the native protocol with 200.
  public static func reply(dialectCode: UInt32, body: [UInt8] = []) -> ServerAction {
    ServerAction(step: .ownCode(dialectCode, body))
  }

  /// Answers 200 in fragments of at most `size` bytes.
  public static func replyInFragments(_ body: [UInt8], of size: Int) -> ServerAction {
    ServerAction(step: .frames { WireFrame.response(to: $0.serial, body).fragments(of: size) })
  }

  /// Refuses: the answer says that no handler was called.
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

  /// Never answers.
  public static let never = ServerAction(step: .nothing)

  // MARK: Wrong answers

  /// Answers 200 twice.
  public static func replyTwice(_ body: [UInt8] = []) -> ServerAction {
    ServerAction(step: .frames { Array(repeating: .response(to: $0.serial, body), count: 2) })
  }

  /// Answers 200 with another serial than the request's; `difference` is added to it.
  public static func wrongSerial(
    _ body: [UInt8] = [],
    difference: UInt32 = 1_000_000
  ) -> ServerAction {
    frame { .response(to: $0.serial &+ difference, body) }
  }

  /// Answers 200 with a checksum that does not fit.
  public static func corruptChecksum(_ body: [UInt8] = []) -> ServerAction {
    ServerAction(step: .corrupt { .response(to: $0.serial, body) })
  }

  /// Sends the first bytes of an answer 200, header included, and closes.
  public static func cutFrame(_ body: [UInt8] = [], afterBytes count: Int) -> ServerAction {
    ServerAction(step: .all([.cut({ .response(to: $0.serial, body) }, count), .close]))
  }

  /// Answers 200, one byte of the frame at a time. What is sent later waits until it is through.
  public static func dribble(_ body: [UInt8] = [], every interval: Duration) -> ServerAction {
    ServerAction(
      step: .dribble(
        { .response(to: $0.serial, body) },
        every: interval.clampedNanoseconds
      )
    )
  }

  // MARK: Anything else

  /// Sends a frame that is made from the request.
  public static func frame(
    _ make: @escaping @Sendable (ReceivedMessage) -> WireFrame
  ) -> ServerAction {
    ServerAction(step: .frames { [make($0)] })
  }

  /// Sends bytes that are made from the request.
  public static func raw(
    _ make: @escaping @Sendable (ReceivedMessage) -> [UInt8]
  ) -> ServerAction {
    ServerAction(step: .raw(make))
  }

  /// Sends bytes as they are.
  public static func raw(_ bytes: [UInt8]) -> ServerAction {
    raw { _ in bytes }
  }

  /// Pushes a message on the request's connection.
  public static func push(_ type: MessageType, _ body: [UInt8] = []) -> ServerAction {
    frame { _ in .push(type, body) }
  }

  /// Sends a request on the request's connection; the answer stands in the server's record.
  public static func ask(_ type: MessageType, _ body: [UInt8] = []) -> ServerAction {
    ServerAction(step: .ask(type, body))
  }

  /// Says goaway on the request's connection, with the number of requests that came on it.
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

  /// Ends the server's side of the connection, after what was sent before; reading goes on.
  public static let end = ServerAction(step: .end)

  /// Closes the connection, after what was sent before.
  public static let close = ServerAction(step: .close)

  /// Resets the connection, after what was sent before has been handed to the system.
  ///
  /// On Unix-domain sockets, which have no resets, the peer hears of an end.
  public static let reset = ServerAction(step: .reset)

  /// Reads nothing more from the connection, pings included.
  public static let stopReading = ServerAction(step: .stopReading)

  /// Freezes the whole server, as ``SimulatedServer/freeze()`` does.
  public static let freeze = ServerAction(step: .freeze)

  // MARK: Put together

  /// Does something after a time of the server's loop.
  public static func delay(_ time: Duration, then action: ServerAction) -> ServerAction {
    ServerAction(step: .delay(time.clampedNanoseconds, action.step))
  }

  /// Does one thing after the other; a delay in it delays what it holds, and nothing else.
  public static func sequence(_ actions: [ServerAction]) -> ServerAction {
    ServerAction(step: .all(actions.map(\.step)))
  }

  /// Holds back what is to be done until it was held back `count` times for requests of one type,
  /// and then does all of it in some order.
  ///
  /// ``SimulatedServer/releaseHeld()`` does what is held back before that.
  public static func hold(
    untilThereAre count: Int,
    order: Order = .reversed,
    _ action: ServerAction
  ) -> ServerAction {
    precondition(count > 0, "at least one answer is held back")
    return ServerAction(step: .hold(count: count, order, action.step))
  }
}
