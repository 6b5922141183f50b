// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

/// A handle on one request: you can inspect, cancel and await it.
///
/// It may be used from any thread. Releasing it does not cancel the request.
public final class RequestTask: Sendable {
  private struct Progress {
    var id: RequestID?
    /// Whether the request has been submitted.
    var isSubmitted = false
    var isCancelled = false
    var outcome: Outcome?
    var waiters: [Waiter<Outcome>] = []
  }

  /// The message type of the request.
  public let type: MessageType
  private let port: RequestPort
  private let progress = Mutex(Progress())

  /// Sends a request, at once if the caller is on the loop. `completion` is called on the loop, and
  /// never before this returns.
  package init(
    _ port: RequestPort, _ type: MessageType, _ body: RequestBody, _ options: RequestOptions,
    _ completion: @escaping @Sendable (Outcome) -> Void
  ) {
    self.port = port
    self.type = type
    if port.loop.isCurrent {
      submit(body, options, completion)
    } else {
      port.loop.execute { self.submit(body, options, completion) }
    }
  }

  /// Submits the request; on the loop.
  private func submit(
    _ body: RequestBody, _ options: RequestOptions,
    _ completion: @escaping @Sendable (Outcome) -> Void
  ) {
    var id = RequestID.none
    if progress.withLock({ $0.isCancelled }) {
      finish(.failure(LongLinkError(.cancelled, doing: .request(type))), completion)
    } else {
      id = port.sink.value.submit(
        type, body, options, .function { self.finish($0, completion) })
    }
    let isCancelled = progress.withLock { progress in
      progress.isSubmitted = true
      if id != .none { progress.id = id }
      return progress.isCancelled
    }
    if isCancelled { port.sink.value.cancel(id) }
  }

  private func finish(_ outcome: Outcome, _ completion: @escaping @Sendable (Outcome) -> Void) {
    let waiters = progress.withLock { progress -> [Waiter<Outcome>]? in
      guard progress.isSubmitted else { return nil }
      progress.outcome = outcome
      defer { progress.waiters = [] }
      return progress.waiters
    }
    guard let waiters else {
      // It failed at once. Deferred, because a completion that retries would otherwise recurse.
      port.loop.execute { self.finish(outcome, completion) }
      return
    }
    for waiter in waiters { waiter(outcome) }
    completion(outcome)
  }

  /// The serial on the wire, which the logs of both sides contain; nil until it has one. A retry
  /// after a refusal has a new serial.
  public var serial: UInt32? { progress.withLock { $0.id?.serial } }

  /// The state of the request.
  public var state: RequestState {
    get async {
      let id: RequestID? = progress.withLock { $0.outcome == nil ? $0.id : nil }
      if progress.withLock({ $0.outcome != nil }) { return .completed }
      guard let id else { return .created }
      return await port.loop.run { [port] in port.sink.value.state(of: id) } ?? .completed
    }
  }

  /// Cancels the request, which fails with `cancelled` unless it has already ended.
  public func cancel() {
    let id: RequestID? = progress.withLock { progress in
      progress.isCancelled = true
      return progress.id
    }
    if let id { port.loop.execute { [port] in port.sink.value.cancel(id) } }
  }

  /// The body of the response, once it has come. Cancelling the waiting task cancels the request.
  ///
  /// Throws the error of the request.
  public var value: [UInt8] {
    get async throws(LongLinkError) {
      let outcome = await withTaskCancellationHandler {
        await suspend { (waiter: Waiter<Outcome>) in
          let outcome = progress.withLock { progress -> Outcome? in
            if progress.outcome == nil { progress.waiters.append(waiter) }
            return progress.outcome
          }
          if let outcome { waiter(outcome) }
        }
      } onCancel: {
        cancel()
      }
      return try outcome.get()
    }
  }
}
