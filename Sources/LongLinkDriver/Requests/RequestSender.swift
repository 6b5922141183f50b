// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
public import LongLinkTransport

/// A type that sends requests: a client, or the ``Peer`` of a connection.
///
/// A request has a message type and a body, and its result is the response's bytes; or it belongs
/// to an ``RPCMethod``, and its result is a decoded reply. You can await a request, get a handle on
/// it, pass a completion handler, or block a plain thread until it has ended.
public protocol RequestSender: Sendable {
  /// The port through which the requests are sent. A type of yours that sends its requests over a
  /// client's connections returns the port of the client.
  var senderPort: SenderPort { get }
}

/// Where the requests of a ``RequestSender`` go: to the connections of a client, or of a peer.
public struct SenderPort: Sendable {
  @usableFromInline package let port: RequestPort

  package init(_ port: RequestPort) {
    self.port = port
  }
}

extension RequestSender {
  /// The event loop that sends the requests.
  public var loop: EventLoop { port.loop }

  @inlinable package var port: RequestPort { senderPort.port }
}

// MARK: - Bytes

extension RequestSender {
  /// Sends a request and waits for the body of its response.
  ///
  /// Cancelling the task cancels the request. The timeout is that of the options, else the
  /// configuration's (default 15 s), and starts with this call. Throws `LongLinkError`, whose
  /// `delivery` states what may have happened to the request.
  @inlinable public func request(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: RequestOptions = RequestOptions()
  ) async throws(LongLinkError) -> [UInt8] {
    guard port.observers == nil else {
      return try await awaitObservedResponse(port, type, .none, RequestBody(body), options)
    }
    return try await awaitResponse(port, type, RequestBody(body), options)
  }

  /// Sends a request and returns at once, with a handle that you can await.
  public func submit(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: RequestOptions = RequestOptions()
  ) -> RequestTask<[UInt8]> {
    RequestTask(port, type, .none, RequestBody(body), options)
  }

  /// Sends a request and calls `completion` once, on the given executor, with the body of the
  /// response or the error. It is never called within this call.
  @inlinable @discardableResult
  public func request(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: RequestOptions = RequestOptions(), on executor: CallbackExecutor,
    completion: @escaping @Sendable (Result<[UInt8], LongLinkError>) -> Void
  ) -> RequestHandle {
    RequestHandle(port, type, .none, RequestBody(body), options, executor, completion)
  }

  /// Sends a request, blocks the calling thread until it has ended, and returns the body of the
  /// response.
  ///
  /// Call it only on threads of your own. It traps on the loop, whose thread it would wait for, and
  /// in a Swift task, whose threads must not be blocked.
  public func requestBlocking(
    _ type: MessageType, _ body: some BodyEncodable & Sendable,
    options: RequestOptions = RequestOptions()
  ) throws(LongLinkError) -> [UInt8] {
    try awaitBlocking(type, .none, RequestBody(body), options)
  }

  private func awaitBlocking(
    _ type: MessageType, _ method: MethodName, _ body: RequestBody, _ options: RequestOptions
  ) throws(LongLinkError) -> [UInt8] {
    BlockingSlot<Outcome>.preconditionMayBlock(on: loop)
    let slot = BlockingSlot<Outcome>()
    _ = RequestHandle(port, type, method, body, options, .connectionLoop) { slot.fill($0) }
    return try slot.wait().get()
  }
}

// MARK: - Messages

extension RequestSender {
  /// Sends a request of a method and waits for its reply.
  ///
  /// The method's options apply where `options` has none. Throws `decodingFailed`, delivery
  /// `answered`, if the response does not decode as the reply, and otherwise as the form that takes
  /// a message type.
  @inlinable public func request<Request: BodyEncodable, Reply: BodyDecodable>(
    _ method: RPCMethod<Request, Reply>, _ request: Request,
    options: RequestOptions = RequestOptions()
  ) async throws(LongLinkError) -> Reply {
    let options = options.over(method.options)
    do throws(LongLinkError) {
      let bytes =
        if port.observers != nil {
          try await awaitObservedResponse(
            port, method.type, method.fullName, RequestBody(request), options)
        } else {
          try await awaitResponse(port, method.type, RequestBody(request), options)
        }
      return try Reply(of: bytes, method.type)
    } catch {
      throw error.of(method.fullName)
    }
  }

  /// Sends a request of a method and returns at once, with a handle that you can await.
  public func submit<Request: BodyEncodable, Reply: BodyDecodable>(
    _ method: RPCMethod<Request, Reply>, _ request: Request,
    options: RequestOptions = RequestOptions()
  ) -> RequestTask<Reply> {
    RequestTask(
      port, method.type, method.fullName, RequestBody(request), options.over(method.options))
  }

  /// Sends a request of a method and calls `completion` once, on the given executor, with the reply
  /// or the error. It is never called within this call. If the reply does not decode, `completion`
  /// gets `decodingFailed`.
  @discardableResult
  public func request<Request: BodyEncodable, Reply: BodyDecodable>(
    _ method: RPCMethod<Request, Reply>, _ request: Request,
    options: RequestOptions = RequestOptions(), on executor: CallbackExecutor,
    completion: @escaping @Sendable (Result<Reply, LongLinkError>) -> Void
  ) -> RequestHandle {
    RequestHandle(
      port, method.type, method.fullName, RequestBody(request), options.over(method.options),
      executor
    ) { [type = method.type, name = method.fullName] outcome in
      let reply = outcome.flatMap { bytes in
        Result { () throws(LongLinkError) in try Reply(of: bytes, type) }
      }
      completion(reply.mapError { $0.of(name) })
    }
  }

  /// Sends a request of a method, blocks the calling thread until it has ended, and returns the
  /// reply.
  ///
  /// Throws as the form that is awaited. Call it only on plain threads; it traps in a Swift task
  /// and on the loop.
  public func requestBlocking<Request: BodyEncodable, Reply: BodyDecodable>(
    _ method: RPCMethod<Request, Reply>, _ request: Request,
    options: RequestOptions = RequestOptions()
  ) throws(LongLinkError) -> Reply {
    do throws(LongLinkError) {
      return try Reply(
        of: try awaitBlocking(
          method.type, method.fullName, RequestBody(request), options.over(method.options)),
        method.type)
    } catch {
      throw error.of(method.fullName)
    }
  }
}

extension BodyDecodable {
  /// Decodes the body of a response; throws `decodingFailed`, delivery `answered`.
  @usableFromInline init(of bytes: [UInt8], _ type: MessageType) throws(LongLinkError) {
    do throws(BodyError) {
      self = try Self(copying: bytes)
    } catch {
      throw LongLinkError(
        .decodingFailed, delivery: .answered, doing: .request(type), detail: "\(error)")
    }
  }
}
