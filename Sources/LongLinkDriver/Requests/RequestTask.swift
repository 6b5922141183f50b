// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

/// A handle on one request: you can inspect, cancel and await it.
///
/// It may be used from any thread. Releasing it does not cancel the request.
public struct RequestTask<Reply: Sendable>: Sendable {
  let request: SubmittedRequest
  private let method: MethodName

  /// Sends a request: within this call on the loop, and in a job of the loop from elsewhere.
  init(
    _ port: RequestPort, _ type: MessageType, _ method: MethodName, _ body: RequestBody,
    _ options: RequestOptions
  ) {
    self.method = method
    request = SubmittedRequest(port, type, method, body, options)
  }

  /// The message type of the request.
  public var type: MessageType { request.type }
  /// The serial of the request on the wire, which the logs of both sides contain; nil until it has
  /// one. A retry after a refusal gets a new serial, which is not shown here.
  public var serial: UInt32? { request.serial }
  /// The state of the request.
  public var state: RequestState { get async { await request.state } }

  /// Cancels the request, which fails with `cancelled` unless it has already ended.
  public func cancel() { request.cancel() }
}

extension RequestTask where Reply: BodyDecodable {
  /// The reply, once it has come. Cancelling the waiting task cancels the request.
  ///
  /// Throws the error of the request, or `decodingFailed`, delivery `answered`, if the body does
  /// not decode.
  public var value: Reply {
    get async throws(LongLinkError) {
      do throws(LongLinkError) {
        return try Reply(of: try await request.value, request.type)
      } catch {
        throw error.of(method)
      }
    }
  }
}

/// A request that was submitted, and its outcome.
final class SubmittedRequest: Sendable {
  private struct Progress {
    var id: RequestID?
    var isCancelled = false
    var outcome: Outcome?
    var waiters: [Waiter<Outcome>] = []
  }

  let type: MessageType
  private let port: RequestPort
  private let progress = Mutex(Progress())

  init(
    _ port: RequestPort, _ type: MessageType, _ method: MethodName, _ body: RequestBody,
    _ options: RequestOptions
  ) {
    self.port = port
    self.type = type
    var options = options
    let record = port.record(type, method, &options)
    if port.loop.isCurrent {
      submit(body, options, record)
    } else {
      port.loop.execute { [options] in self.submit(body, options, record) }
    }
  }

  /// Submits the request; on the loop.
  private func submit(_ body: RequestBody, _ options: RequestOptions, _ record: ExchangeRecord?) {
    let wasCancelled = progress.withLock { $0.isCancelled }
    if wasCancelled || record?.refusal != nil {
      let outcome = Outcome.failure(
        record?.refusal
          ?? LongLinkError(.cancelled, doing: .request(type)).covering(options.ticket))
      record?.end(outcome)
      return finish(outcome)
    }
    let id = port.sink.value.submit(
      type, body, options, Completion.function { self.finish($0) }.recorded(by: record))
    let isCancelled = progress.withLock { progress in
      if id != .none { progress.id = id }
      return progress.isCancelled
    }
    if isCancelled { port.sink.value.cancel(id) }
  }

  private func finish(_ outcome: Outcome) {
    let waiters = progress.withLock { progress in
      progress.outcome = outcome
      defer { progress.waiters = [] }
      return progress.waiters
    }
    for waiter in waiters { waiter(outcome) }
  }

  var serial: UInt32? { progress.withLock { $0.id?.serial } }

  var state: RequestState {
    get async {
      let id: RequestID? = progress.withLock { $0.outcome == nil ? $0.id : nil }
      if progress.withLock({ $0.outcome != nil }) { return .completed }
      guard let id else { return .created }
      return await port.loop.run { [port] in port.sink.value.state(of: id) } ?? .completed
    }
  }

  func cancel() {
    let id: RequestID? = progress.withLock { progress in
      progress.isCancelled = true
      return progress.id
    }
    if let id { port.loop.execute { [port] in port.sink.value.cancel(id) } }
  }

  var value: [UInt8] {
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
