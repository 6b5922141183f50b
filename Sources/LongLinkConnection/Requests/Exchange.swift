package import LongLinkCore
@_spi(Loop) package import LongLinkTransport

/// What takes requests, on its loop.
package protocol RequestSink: AnyObject {
  /// Gives a request its identity. It is registered, and nothing else happens yet.
  func register(_ options: RequestOptions) -> RequestTicket
  /// Sends a registered request, lets it wait or fails it; `completion` is called exactly once.
  func launch(
    _ ticket: RequestTicket, _ type: MessageType, _ body: any BodyEncodable & Sendable,
    _ options: RequestOptions, _ completion: Completion)
  /// Ends a request with `cancelled`, unless it has ended.
  func cancel(_ id: RequestID)
}

/// A request that is registered: who it is, and when its time is over.
package struct RequestTicket: Sendable {
  package let id: RequestID
  package let deadline: LinkInstant

  package init(id: RequestID, deadline: LinkInstant) {
    self.id = id
    self.deadline = deadline
  }
}

extension RequestSink {
  /// Registers and launches.
  @discardableResult
  package func submit(
    _ type: MessageType, _ body: any BodyEncodable & Sendable, _ options: RequestOptions,
    _ completion: @escaping @Sendable (Outcome) -> Void
  ) -> RequestID {
    let ticket = register(options)
    launch(ticket, type, body, options, .function(completion))
    return ticket.id
  }
}

/// One request from a task: registered on the loop, cancelled with the task, resumed once.
///
/// On the loop itself nothing is hopped to: the request is registered and sent by this very call,
/// and nothing is allocated for it here.
package func exchange(
  _ sink: LoopBound<any RequestSink>, on loop: EventLoop,
  _ type: MessageType, _ body: any BodyEncodable & Sendable, _ options: RequestOptions
) async throws(LongLinkError) -> [UInt8] {
  guard loop.isCurrent else {
    return try await LoopActor(loop).converse(sink, type, body, options).get()
  }
  return try await converse(sink, on: loop, type, body, options).get()
}

/// Runs on the loop; `sink` traps elsewhere.
@inline(__always)
private func converse(
  _ sink: LoopBound<any RequestSink>, on loop: EventLoop,
  _ type: MessageType, _ body: any BodyEncodable & Sendable, _ options: RequestOptions
) async -> Outcome {
  if Task.isCancelled {
    return .failure(LongLinkError(.cancelled, doing: "request type=\(type)"))
  }
  let ticket = sink.value.register(options)
  return await suspend {
    sink.value.launch(ticket, type, body, options, .waiter($0))
  } onCancel: {
    // This may run on any thread. The loop gets to it after the launch.
    loop.execute { sink.value.cancel(ticket.id) }
  }
}

/// Suspends until the waiter is called; `onCancel` is called, on any thread, when the task is
/// cancelled before that.
///
/// It is what `withTaskCancellationHandler` does. That is a function of the library with an
/// isolation of its own, so that each call changes executors four times, which costs more than a
/// request does otherwise. The two entry points that it is made of are part of the interface of the
/// runtime: code that deploys to older systems contains calls of them.
private func suspend(
  _ body: (Waiter<Outcome>) -> Void, onCancel handler: @Sendable () -> Void
) async -> Outcome {
  // The handler is a parameter, and so outlives the record; records end in the reverse order of
  // their making, since nothing else is begun in between.
  let record = unsafe addCancellationHandler(handler)
  let outcome = await suspend(body)
  unsafe removeCancellationHandler(record)
  return outcome
}

@_silgen_name("swift_task_addCancellationHandler")
private func addCancellationHandler(_ handler: () -> Void) -> UnsafeRawPointer

@_silgen_name("swift_task_removeCancellationHandler")
private func removeCancellationHandler(_ record: UnsafeRawPointer)

/// An actor on a loop, to hop there.
private actor LoopActor {
  private let loop: EventLoop

  init(_ loop: EventLoop) {
    self.loop = loop
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe loop.asUnownedSerialExecutor()
  }

  func converse(
    _ sink: LoopBound<any RequestSink>, _ type: MessageType,
    _ body: any BodyEncodable & Sendable, _ options: RequestOptions
  ) async -> Outcome {
    await LongLinkConnection.converse(sink, on: loop, type, body, options)
  }

  func perform<Value: Sendable>(_ work: @Sendable () -> Value) -> Value {
    work()
  }
}

extension EventLoop {
  /// Runs a function on the loop and returns its value; at once where the caller is there already.
  package func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    if isCurrent { return work() }
    return await LoopActor(self).perform(work)
  }
}
