// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
@_spi(Loop) package import LongLinkTransport

/// A push that waits for room; the gate opens with its result.
typealias WaitingPush = (id: UInt64, gate: Gate<Result<Void, LongLinkError>>)

/// The pushes of one side that wait for room on its connection, the most urgent first.
///
/// It lives on its loop. Each push is removed once: sent, cancelled, past its deadline, or with the
/// connection.
package final class PushQueue: TimerHandler {
  private struct Waiting {
    let push: OutgoingPush
    var operation: LongLinkError.Operation { .push(push.type) }
    let bytes: Int
    let gate: Gate<Result<Void, LongLinkError>>
    let timer: LoopTimer
    /// How long the push may wait, in nanoseconds.
    let time: Int64
    /// The link for which the push waits.
    var link: Link
    let position: UInt32
  }

  private struct Position: Comparable {
    let priority: UInt32
    let id: UInt64

    static func < (lhs: Position, rhs: Position) -> Bool {
      lhs.priority == rhs.priority ? lhs.id < rhs.id : lhs.priority > rhs.priority
    }
  }

  private let loop: EventLoop
  /// The most pushes that may wait at a time.
  private let maxWaiting: Int
  /// The most bytes that the bodies of all waiting pushes may have together.
  private let maxWaitingBytes: Int
  /// The timeout of a push whose options have none, in nanoseconds.
  private let defaultTimeout: Int64
  /// The waiting pushes by id; the order of this dictionary must not matter.
  private var waiting: [UInt64: Waiting] = [:]
  private var order = IndexedHeap<Position>()
  private var nextID: UInt64 = 0
  private var waitingBytes = 0
  private var isPumping = false

  package init(maxWaiting: Int, maxWaitingBytes: Int, timeout: Int64, on loop: EventLoop) {
    self.loop = loop
    self.maxWaiting = maxWaiting
    self.maxWaitingBytes = maxWaitingBytes
    defaultTimeout = timeout
  }

  package var count: Int { order.count }

  /// Sends a push and returns nil, or queues it if there is no room.
  func push(
    _ push: OutgoingPush, within timeout: Duration?, over link: Link
  ) throws(LongLinkError) -> WaitingPush? {
    if order.isEmpty, push.hasRoom(on: link) {
      try push.send(on: link)
      return nil
    }
    let bytes = try push.validate(on: link)
    guard order.count < maxWaiting, bytes <= maxWaitingBytes - waitingBytes else {
      link.count { $0.pushesTurnedAway += 1 }
      let bounds = "at most \(maxWaiting) pushes (\(maxWaitingBytes) bytes) may wait"
      throw overloaded(push.type, link, "\(bounds); \(order.count) (\(waitingBytes) bytes) do")
    }
    return wait(push, bytes, timeout?.clampedNanoseconds ?? defaultTimeout, for: link)
  }

  private func wait(
    _ push: OutgoingPush, _ bytes: Int, _ time: Int64, for link: Link
  ) -> WaitingPush {
    nextID += 1
    let id = nextID
    let gate = Gate<Result<Void, LongLinkError>>()
    waiting[id] = Waiting(
      push: push, bytes: bytes, gate: gate,
      timer: loop.schedule(at: loop.now + time, self, token: id), time: time,
      link: link,
      position: order.insert(Position(priority: push.priority, id: id)))
    waitingBytes += bytes
    link.count { $0.pushesWaited += 1 }
    return (id, gate)
  }

  /// Sends a push, or throws `overloaded` if there is no room now.
  package func pushNow(
    _ type: MessageType, _ body: any BodyEncodable & Sendable, priority: UInt32, over link: Link
  ) throws(LongLinkError) {
    let push = OutgoingPush(type: type, body: body, priority: priority)
    try push.validate(on: link)
    guard order.isEmpty, push.hasRoom(on: link) else {
      link.count { $0.pushesTurnedAway += 1 }
      let marks = link.connection.settings.waterMarks
      throw overloaded(
        type, link,
        "\(link.connection.outbox.totalBytes) bytes wait for the peer; "
          + "the high-water marks are \(marks.high) and, for bodies in fragments, \(marks.large)")
    }
    try push.send(on: link)
  }

  private func overloaded(_ type: MessageType, _ link: Link, _ detail: String) -> LongLinkError {
    LongLinkError(.overloaded, doing: .push(type), detail: detail, peer: link.peer)
  }

  /// Sends waiting pushes while there is room.
  package func pump(over link: Link) {
    // A push may re-enter by making room at once; the outer call continues with the rest.
    guard !isPumping else { return }
    isPumping = true
    defer { isPumping = false }
    // After a move to another link, waiting pushes must not retain the old one.
    if let position = order.first, waiting[position.id]?.link !== link {
      for id in waiting.keys { waiting[id]?.link = link }
    }
    while let position = order.first, let next = waiting[position.id],
      next.push.hasRoom(on: link), let taken = take(position.id)
    {
      taken.gate.open(Result { () throws(LongLinkError) in try taken.push.send(on: link) })
    }
  }

  private func take(_ id: UInt64) -> Waiting? {
    guard let push = waiting.removeValue(forKey: id) else { return nil }
    order.remove(push.position)
    waitingBytes -= push.bytes
    loop.cancel(push.timer)
    return push
  }

  /// Fails all waiting pushes, the most urgent first.
  package func failAll(_ make: (LongLinkError.Operation) -> LongLinkError) {
    while let position = order.first, let push = take(position.id) {
      fail(push, make(push.operation))
    }
  }

  private func fail(_ push: Waiting, _ error: LongLinkError) {
    push.link.count { $0.pushesGivenUp += 1 }
    push.gate.open(.failure(error))
  }

  /// Fails a waiting push with `cancelled`.
  package func cancel(_ id: UInt64) {
    guard let push = take(id) else { return }
    fail(push, LongLinkError(.cancelled, doing: push.operation))
  }

  package func timerFired(token: UInt64) {
    guard let push = take(token) else { return }
    fail(
      push,
      LongLinkError(
        .deadlineExceeded, doing: push.operation,
        detail: "it has waited for room for \(Duration.nanoseconds(push.time))"))
  }
}

/// The owner of a push queue and its links; used on its loop.
package protocol PushSink: AnyObject {
  /// The queue; nil if it was never needed.
  var pushesIfAny: PushQueue? { get }
  /// Returns the queue and the link for a push; throws if there is no link.
  func wayOfPush(_ type: MessageType) throws(LongLinkError) -> (PushQueue, Link)
}

extension PushSink {
  /// Sends a push, or throws `overloaded` if there is no room now.
  package func pushNow(
    _ type: MessageType, _ body: any BodyEncodable & Sendable, priority: UInt32
  ) throws(LongLinkError) {
    let (queue, link) = try wayOfPush(type)
    try queue.pushNow(type, body, priority: priority, over: link)
  }
}

/// Sends a push from a task, at once or when there is room. Cancelling the task cancels the wait.
package func deliver<Sink: PushSink & SendableMetatype>(
  _ sink: LoopBound<Sink>, on loop: EventLoop, _ type: MessageType,
  _ body: any BodyEncodable & Sendable, _ timeout: Duration?, _ priority: UInt32
) async throws(LongLinkError) {
  let waiting = await loop.run {
    Result { () throws(LongLinkError) in
      let (queue, link) = try sink.value.wayOfPush(type)
      let push = OutgoingPush(type: type, body: body, priority: priority)
      return try queue.push(push, within: timeout, over: link)
    }
  }
  guard let (id, gate) = try waiting.get() else { return }
  let result = await withTaskCancellationHandler {
    await gate.value
  } onCancel: {
    loop.execute { sink.value.pushesIfAny?.cancel(id) }
  }
  try result.get()
}
