// SPDX-License-Identifier: Apache-2.0

public import LongLink
public import LongLinkDriver
public import LongLinkCore
@_spi(Loop) import LongLinkTransport

/// What applications call: typed calls over a `LongLinkClient`, with shared exchanges, a cache,
/// groups, pages and events.
///
/// It may be used from any thread. Several of them over one client know nothing of each other.
/// Closing the client ends everything here too.
public final class CallClient: Sendable {
  /// The client underneath.
  public let client: LongLinkClient
  /// What the call client was told to do.
  public let configuration: CallConfiguration
  let core: LoopBound<CallCore>
  private let list = BroadcastList<MessageType, CallEvent>()

  /// Makes a call client.
  ///
  /// Throws `invalidConfiguration`, naming the field, when the configuration cannot work.
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
  /// Cancelling the task ends the call; the exchange is cancelled when the last of its calls is.
  public func value<Reply>(of call: Call<Reply>) async throws(CallError) -> Reply {
    let prepared = try PreparedCall(call, configuration)
    let gate = Gate<Result<Reply, CallError>>()
    let caller = LoopBound(CallerNumber(), on: client.loop)
    if Task.isCancelled {
      throw prepared.describe(LongLinkError(.cancelled, doing: .request(call.type)))
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

  /// Calls a method and waits for its reply, as `value(of:)` does.
  public func call<Request, Reply>(
    _ method: RPCMethod<Request, Reply>, _ request: Request,
    policy: CallPolicy = CallPolicy()
  ) async throws(CallError) -> Reply where Request: BodyEncodable, Reply: BodyDecodable {
    try await value(of: method(request, policy: policy))
  }

  /// What the call client has counted so far.
  public func counters() async -> CallCounters {
    await client.loop.run { [core] in core.value.snapshot }
  }
}

// MARK: - Events

extension CallClient {
  /// Pushes of a type, and how requests of it end, or all of both where `type` is nil.
  ///
  /// Events are buffered from this call on, over reconnects too. A consumer that falls 1,024
  /// events or 64 MiB behind loses the oldest ones, which are counted.
  public func events(of type: MessageType? = nil) -> BufferedSequence<CallEvent, Never> {
    events(of: type, buffer: .dropOldest(1024))
  }

  /// As the other form, with a buffer of the caller's choice.
  ///
  /// With a buffer that may close it, `for try await` throws `LongLinkError` when the consumer has
  /// fallen behind.
  public func events<Failure>(
    of type: MessageType? = nil, buffer: PushBuffer<Failure>
  ) -> BufferedSequence<CallEvent, Failure> {
    list.subscribe(type, buffer)
  }
}

// MARK: - The cache

extension CallClient {
  /// Forgets all answers of a method; those on their way are not kept either.
  public func invalidate<Request, Reply>(_ method: RPCMethod<Request, Reply>) {
    client.loop.runOnLoop { [core, type = method.type] in core.value.invalidate(type) }
  }

  /// Forgets the answer to one call; one on its way is not kept either.
  public func invalidate<Reply>(_ call: Call<Reply>) {
    var call = call
    call.policy.isShared = true
    // What cannot be encoded was never asked for.
    guard let key = try? PreparedCall(call, configuration).plan.key else { return }
    client.loop.runOnLoop { [core] in core.value.invalidate(key) }
  }

  /// Forgets all answers, as when another user signs in. Switching servers does so by itself.
  public func invalidateAll() {
    client.loop.runOnLoop { [core] in core.value.invalidateAll() }
  }
}

/// The number of a call, which the loop gives it.
private final class CallerNumber {
  var id: UInt64?
}
