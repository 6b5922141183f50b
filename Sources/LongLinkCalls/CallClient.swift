// SPDX-License-Identifier: Apache-2.0

public import LongLink
public import LongLinkDriver
public import LongLinkCore
@_spi(Loop) import LongLinkTransport

/// A client for typed calls over a `LongLinkClient`, with de-duplication, a cache, groups, pages
/// and events.
///
/// An exchange is one request with its response; identical calls may share one. A call client may
/// be used from any thread. Several call clients over one client are independent of each other.
/// Closing the client ends all of its calls, groups, lists and events.
public final class CallClient: Sendable {
  /// The client that makes the requests.
  public let client: LongLinkClient
  /// The configuration that the call client was made with.
  public let configuration: CallConfiguration
  let core: LoopBound<CallCore>
  private let list = BroadcastList<MessageType, CallEvent>()

  /// Makes a call client.
  ///
  /// Throws `invalidConfiguration`, with the field's name, if a value is out of range.
  public init(
    _ client: LongLinkClient, _ configuration: CallConfiguration = CallConfiguration()
  ) throws(LongLinkError) {
    try configuration.validate()
    self.client = client
    self.configuration = configuration
    let core = LoopBound(CallCore(client, configuration, list), on: client.loop)
    self.core = core
    client.loop.runOnLoop { core.value.client.addWatcher(core.value) }
  }

  /// Makes a call and waits for its reply.
  ///
  /// Cancelling the task ends the call with `cancelled`. It also cancels the exchange, unless other
  /// calls share it.
  public func value<Reply>(of call: Call<Reply>) async throws(CallError) -> Reply {
    let prepared = try PreparedCall(call, configuration)
    let gate = Gate<Result<Reply, CallError>>()
    let caller = LoopBound(CallerNumber(), on: client.loop)
    if Task.isCancelled {
      throw prepared.describe(
        LongLinkError(.cancelled, doing: call.operation).covering(prepared.plan.options.ticket))
    }
    client.loop.runOnLoop { [core] in
      caller.value.id = core.value.begin(prepared) { gate.open($0) }
    }
    let result = await withTaskCancellationHandler {
      await gate.value
    } onCancel: {
      client.loop.execute { [core] in
        if let id = caller.value.id { core.value.leave(id) }
      }
    }
    return try result.get()
  }

  /// Calls a method and waits for its reply.
  ///
  /// Cancelling the task ends the call with `cancelled`. It also cancels the exchange, unless other
  /// calls share it.
  public func call<Request, Reply>(
    _ method: RPCMethod<Request, Reply>, _ request: Request,
    policy: CallPolicy = CallPolicy()
  ) async throws(CallError) -> Reply where Request: BodyEncodable, Reply: BodyDecodable {
    try await value(of: method(request, policy: policy))
  }

  /// Returns a snapshot of the call client's counters.
  public func counters() async -> CallCounters {
    await client.loop.run { [core] in core.value.snapshot }
  }
}

// MARK: - Events

extension CallClient {
  /// Returns the pushes and the ends of exchanges of one type, or of all types if nil, until the
  /// client closes.
  ///
  /// Events are buffered from this call on, across reconnects. A consumer that falls 1,024 events
  /// or 64 MiB behind loses the oldest ones, which are counted.
  public func events(of type: MessageType? = nil) -> BufferedSequence<CallEvent, Never> {
    events(of: type, buffer: .dropOldest(1024))
  }

  /// Returns the pushes and the ends of exchanges of one type, or of all types if nil, with the
  /// given buffer, until the client closes.
  ///
  /// Events are buffered from this call on, across reconnects. With a `close` buffer, `for try
  /// await` throws `overloaded` when the consumer falls behind.
  public func events<Failure>(
    of type: MessageType? = nil, buffer: PushBuffer<Failure>
  ) -> BufferedSequence<CallEvent, Failure> {
    list.subscribe(type, buffer)
  }
}

// MARK: - The cache

extension CallClient {
  /// Invalidates all cached responses of a method; responses in flight are not cached either.
  public func invalidate<Request, Reply>(_ method: RPCMethod<Request, Reply>) {
    client.loop.runOnLoop { [core, type = method.type] in core.value.invalidate(type) }
  }

  /// Invalidates the cached response to one call; a response in flight is not cached either.
  public func invalidate<Reply>(_ call: Call<Reply>) {
    var call = call
    call.policy.isShared = true
    // A call that cannot be encoded was never made.
    guard let key = try? PreparedCall(call, configuration).plan.key else { return }
    client.loop.runOnLoop { [core] in core.value.invalidate(key) }
  }

  /// Invalidates all cached responses, for example when another user signs in. Responses in flight
  /// are not cached either. Switching servers does this automatically.
  public func invalidateAll() {
    client.loop.runOnLoop { [core] in core.value.invalidateAll() }
  }
}

/// The number of a call, assigned on the loop.
private final class CallerNumber {
  var id: UInt64?
}
