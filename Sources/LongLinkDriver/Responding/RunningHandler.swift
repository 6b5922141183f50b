// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport

/// A handler that runs in a task, for one request: what the connection keeps in the request's row.
///
/// For a request that is to run once, the handler outlives the exchange, or there is none: then the
/// exchange waits for the reply of another one's.
///
/// All of its variables are used on the loop alone.
package final class RunningHandler: @unchecked Sendable, TimerHandler {
  let request: InboundRequest
  private let handler: @Sendable (InboundRequest) async throws -> AnyBody
  let responder: Responder
  /// The link that carried the request; it may have ended.
  let link: Link
  private let loop: EventLoop
  /// This side of the request's stream; nil if the request carries no items.
  let channel: ItemChannel?
  /// The record of the request; nil if nobody observes.
  let record: ExchangeRecord?
  /// The handler's task; nil before it begins, and once it has returned or the request has ended.
  var task: Task<Void, any Error>?
  /// The handler that begins after this one, while both wait in a `HandlerQueue`.
  var next: RunningHandler?
  private var timer: LoopTimer?
  /// Whether the request has ended. The handler may still run.
  private(set) var hasEnded = false
  /// Whether the request is ending now: its row may still be that of a running request.
  var isEnding = false
  /// Whether the handler must not begin, or must not go on.
  var isUnwanted = false
  /// Whether the handler of a request that is to run once has returned, or will not be called.
  var isDone = false
  /// Whether the deadline of a request that is to run once has passed.
  var isLate = false
  /// What the handler has returned, while its last items wait to be sent, or its request ends.
  var result: Result<AnyBody, any Error>?

  init(
    _ handler: @escaping @Sendable (InboundRequest) async throws -> AnyBody,
    _ request: InboundRequest, _ channel: ItemChannel?, _ record: ExchangeRecord?,
    for responder: Responder, on link: Link
  ) {
    self.record = record
    self.handler = handler
    self.request = request
    self.channel = channel
    self.responder = responder
    self.link = link
    loop = responder.loop
  }

  /// Returns the handler that a connection keeps as the payload of a request.
  fileprivate static func kept(_ payload: AnyObject) -> RunningHandler {
    // Nothing else is kept as a payload.
    unsafe unsafeDowncast(payload, to: RunningHandler.self)
  }

  /// Ends the request at its deadline.
  func setTimer() {
    guard let deadline = request.deadline else { return }
    timer = loop.schedule(at: deadline, self, token: 0)
  }

  package func timerFired(token: UInt64) {
    timer = nil
    responder.deadlinePassed(self)
  }

  /// Ends the request. With `cancelling`, the handler's task is cancelled if it still runs, unless
  /// the handler outlives the request; then it still has its deadline.
  func end(cancelling: Bool) {
    hasEnded = true
    if request.onceRun != nil, !isDone { return }
    stop()
    channel?.close("the exchange has ended")
    if cancelling { task?.cancel() }
    task = nil
  }

  /// Stops the timer, because neither the exchange nor the handler goes on.
  private func stop() {
    isUnwanted = true
    if let timer { loop.cancel(timer) }
    timer = nil
  }

  /// Notes that the handler of a request that is to run once has returned, or will not be called.
  func done() {
    isDone = true
    if hasEnded { stop() }
  }

  /// Skips the handler, because the request has ended before the handler began.
  func skip() { responder.returned(self, .failure(HandlerSkipped())) }

  func run() async {
    if loop.isCurrent { loop.handlerBegins(request.type) }
    let result: Result<AnyBody, any Error>
    do {
      // A request that ended before its task ran: skip the handler.
      if Task.isCancelled { throw HandlerSkipped() }
      if let record, let observers = responder.observers {
        result = .success(
          try await observers.withScope(of: record) { try await handler(request) })
      } else {
        result = .success(try await handler(request))
      }
    } catch {
      result = .failure(error)
    }
    if loop.isCurrent {
      responder.returned(self, result)
    } else {
      loop.execute { self.responder.returned(self, result) }
    }
  }
}

extension InboundTable {
  /// The running handler of a request that has not ended; nil for a synchronous handler.
  func handler(of serial: UInt32) -> RunningHandler? {
    payload(of: serial).map(RunningHandler.kept)
  }

  /// The running handler of a request that has ended; nil if it has returned.
  func handler(ofOutlived id: InboundID) -> RunningHandler? {
    payload(ofOutlived: id).map(RunningHandler.kept)
  }

  /// The running handlers of all requests that have not ended.
  var handlers: [RunningHandler] { runningPayloads.map(RunningHandler.kept) }

  /// The running handlers of all requests that have ended, in the order in which these arrived.
  var outlivedHandlers: [RunningHandler] { outlivedPayloads.map(RunningHandler.kept) }
}
