// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
@_spi(Loop) internal import LongLinkTransport

/// A request whose outcome goes to a completion handler: you can look at it and cancel it.
///
/// You can use it from any thread. If you drop it, the request continues.
public struct RequestHandle: Sendable {
  private enum Target {
    /// A request that was made on the loop.
    case request(RequestID)
    /// A request that was made elsewhere, and that the loop may not have sent yet.
    case watch(RequestWatch)
  }

  /// The type of the request's message.
  public let type: MessageType
  private let port: RequestPort
  private let target: Target

  /// Sends a request: within this call on the loop, and in a job of the loop from elsewhere.
  @usableFromInline package init(
    _ port: RequestPort, _ type: MessageType, _ method: MethodName, _ body: consuming RequestBody,
    _ options: borrowing RequestOptions, _ executor: borrowing CallbackExecutor,
    _ completion: @escaping @Sendable (Result<[UInt8], LongLinkError>) -> Void
  ) {
    self.init(port, type, method, body, options, .handler(executor.calling(completion)))
  }

  /// Sends a request that carries items: within this call on the loop, else in a job of the loop.
  init(_ stream: StreamRequest) {
    let options = stream.options.request
    self.init(
      stream.port, stream.type, stream.method, stream.body, options, .stream(stream.channel))
  }

  /// Sends the request of a stream no earlier than in `delay` nanoseconds. Call it on the loop.
  init(_ stream: StreamRequest, after delay: Int64) {
    (port, type) = (stream.port, stream.type)
    var options = stream.options.request
    let record = port.record(type, stream.method, isStream: true, &options)
    let completion = Completion.stream(stream.channel).recorded(by: record)
    guard let refusal = record?.refusal else {
      target = .request(
        port.sink.value.submit(type, stream.body, options, completion, after: delay))
      return
    }
    port.loop.execute { completion(.failure(refusal)) }
    target = .request(.none)
  }

  private init(
    _ port: RequestPort, _ type: MessageType, _ method: MethodName, _ body: consuming RequestBody,
    _ options: borrowing RequestOptions, _ completion: consuming Completion
  ) {
    self.port = port
    self.type = type
    if port.observers != nil {
      target = RequestHandle.submitObserved(port, type, method, body, copy options, completion)
    } else {
      target = RequestHandle.submit(port, type, body, options, completion)
    }
  }

  @inline(__always)
  private static func submit(
    _ port: RequestPort, _ type: MessageType, _ body: consuming RequestBody,
    _ options: borrowing RequestOptions, _ completion: consuming Completion
  ) -> Target {
    guard !port.loop.isCurrent else {
      return .request(port.sink.value.submit(type, body, options, completion))
    }
    let watch = RequestWatch(port)
    port.loop.execute { [body, completion, options = copy options] in
      port.submit(type, body, options, completion, watch)
    }
    return .watch(watch)
  }

  @inline(never)
  private static func submitObserved(
    _ port: RequestPort, _ type: MessageType, _ method: MethodName, _ body: RequestBody,
    _ options: RequestOptions, _ completion: Completion
  ) -> Target {
    var options = options
    let record = port.record(type, method, isStream: completion.isStream, &options)
    let completion = completion.recorded(by: record)
    guard let refusal = record?.refusal else {
      return submit(port, type, body, options, completion)
    }
    port.loop.execute { completion(.failure(refusal)) }
    return .request(.none)
  }

  private var id: RequestID? {
    switch target {
    case .request(let id): id
    case .watch(let watch): watch.id
    }
  }

  /// The serial of the request on the wire, which the logs of both sides contain; nil until it has
  /// one. A retry after a refusal gets a new serial, which is not shown here.
  public var serial: UInt32? {
    guard let id, id != .none else { return nil }
    return id.serial
  }

  /// The state of the request.
  public var state: RequestState {
    get async {
      guard let id else {
        guard case .watch(let watch) = target, watch.isCancelled else { return .created }
        // The job that makes the request also ends it.
        return await port.loop.run { .completed }
      }
      return await port.loop.run { [port] in port.sink.value.state(of: id) } ?? .completed
    }
  }

  /// Ends the request with `cancelled`, unless it has ended.
  public func cancel() {
    switch target {
    case .request(let id): port.loop.execute { [port] in port.sink.value.cancel(id) }
    case .watch(let watch): watch.cancel()
    }
  }
}
