// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkSystem
public import LongLinkCore
@_spi(Loop) package import LongLinkTransport
internal import Synchronization

/// An object that takes requests, on its loop.
package protocol RequestSink: AnyObject {
  /// Sends, queues or fails a request and returns its identity. `completion` is called exactly
  /// once, possibly before this returns.
  func submit(
    _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
    _ completion: consuming Completion
  ) -> RequestID
  /// Queues a request, which is sent no earlier than in `delay` nanoseconds, or fails it.
  func submit(
    _ type: MessageType, _ body: RequestBody, _ options: RequestOptions, _ completion: Completion,
    after delay: Int64
  ) -> RequestID
  /// The windows from which the delays of streams that are opened again are drawn.
  var reconnect: ReconnectPolicy { get }
  /// Ends a request with `cancelled`, unless it has ended.
  func cancel(_ id: RequestID)
  /// The state of a request; nil once it has ended.
  func state(of id: RequestID) -> RequestState?
}

/// Passes the requests of tasks to a sink on its loop.
@safe @usableFromInline package final class RequestPort: Sendable {
  package let loop: EventLoop
  let sink: LoopBound<any RequestSink>
  /// The observers and interceptors of the requests; nil if there are neither.
  @usableFromInline let observers: Observers?
  // Spare watches, in a chain that owns them; used on the loop. Unmanaged, because each request
  // would pay for reference counting several times.
  private nonisolated(unsafe) var spare: Unmanaged<RequestWatch>?
  private nonisolated(unsafe) var spareCount = 0

  /// The largest number of spare watches.
  private static let mostSpare = 1024

  package init(_ sink: any RequestSink, observers: Observers? = nil, on loop: EventLoop) {
    self.loop = loop
    self.observers = observers
    self.sink = LoopBound(sink, on: loop)
  }

  deinit {
    while let watch = unsafe spare {
      unsafe spare = watch.takeUnretainedValue().next
      unsafe watch.release()
    }
  }

  /// Submits a request; on the loop.
  @inline(__always)
  func submit(
    _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
    _ completion: consuming Completion, _ watch: borrowing RequestWatch
  ) {
    let id = sink.value.submit(type, body, options, completion)
    // The task may have been cancelled meanwhile.
    if !watch.begin(id) { sink.value.cancel(id) }
  }

  /// A watch for a request; on the loop.
  @inline(__always)
  func takeWatch() -> RequestWatch {
    guard let watch = unsafe spare?.takeRetainedValue() else { return RequestWatch(self) }
    unsafe spare = watch.next
    unsafe spareCount &-= 1
    return watch
  }

  /// Keeps a watch that no task uses any more; on the loop.
  @inline(__always)
  func keep(_ watch: consuming RequestWatch) {
    guard unsafe spareCount < RequestPort.mostSpare else { return }
    watch.forget()
    unsafe watch.next = spare
    unsafe spare = Unmanaged.passRetained(watch)
    unsafe spareCount &+= 1
  }
}

/// A request of a task: ends it when the task is cancelled, and lets a task of the loop wait.
///
/// It is an actor that is its own executor. The job of a task that calls `wait` comes to `enqueue`,
/// and runs when the outcome is there. A continuation costs more: before and after it the runtime
/// looks up, under the task's lock, which executor the task prefers.
@safe package actor RequestWatch: SerialExecutor {
  // The waiting function holds the port, and that its loop: neither is counted for each request.
  private let port: Unmanaged<RequestPort>
  private let loop: Unmanaged<EventLoop>
  private let serial = Atomic<UInt32>(0)
  /// The request's number, or one of the two values below.
  private let number = Atomic<UInt64>(RequestWatch.unnamed)

  // Both are used on the loop, until the job runs.
  private nonisolated(unsafe) var outcome: Outcome?
  private nonisolated(unsafe) var job: UnownedJob?

  /// The next spare watch; used on the loop, while no task uses this one.
  fileprivate nonisolated(unsafe) var next: Unmanaged<RequestWatch>?

  private static let unnamed = UInt64.max
  private static let cancelled = UInt64.max - 1

  init(_ port: RequestPort) {
    unsafe self.port = Unmanaged.passUnretained(port)
    unsafe loop = Unmanaged.passUnretained(port.loop)
  }

  /// Whether the task was cancelled before the request was named.
  nonisolated var isCancelled: Bool { number.load(ordering: .relaxed) == RequestWatch.cancelled }

  /// The request's identity; nil until it is named.
  nonisolated var id: RequestID? {
    let number = number.load(ordering: .acquiring)
    guard number < RequestWatch.cancelled else { return nil }
    return RequestID(serial: serial.load(ordering: .relaxed), number: number)
  }

  /// Makes the watch ready for another request, once no task uses it.
  nonisolated func forget() {
    number.store(RequestWatch.unnamed, ordering: .relaxed)
  }

  /// Names the request; returns false if its task was cancelled before.
  nonisolated func begin(_ id: RequestID) -> Bool {
    serial.store(id.serial, ordering: .relaxed)
    return number.compareExchange(
      expected: RequestWatch.unnamed, desired: id.number, ordering: .acquiringAndReleasing
    ).exchanged
  }

  /// Handles the cancellation of the task; on any thread.
  nonisolated func cancel() {
    let (isEarly, number) = number.compareExchange(
      expected: RequestWatch.unnamed, desired: RequestWatch.cancelled,
      ordering: .acquiringAndReleasing)
    guard !isEarly else { return }
    let id = RequestID(serial: serial.load(ordering: .relaxed), number: number)
    let port = unsafe port.takeUnretainedValue()
    // The loop runs this after the job that submits the request.
    port.loop.execute { port.sink.value.cancel(id) }
  }
}

// MARK: - Waiting on the loop

extension RequestWatch {
  /// A task that waits in a watch, and keeps it alive. Call it exactly once, on the loop.
  @safe package struct Waiter: Sendable {
    private let watch: Unmanaged<RequestWatch>

    fileprivate init(_ watch: RequestWatch) {
      unsafe self.watch = Unmanaged.passUnretained(watch)
    }

    @inline(__always)
    package func callAsFunction(_ outcome: consuming Outcome) {
      var outcome: Outcome? = consume outcome
      unsafe watch._withUnsafeGuaranteedRef { $0.end(outcome.take()) }
    }
  }

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe asUnownedSerialExecutor()
  }

  package nonisolated func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    unsafe loop._withUnsafeGuaranteedRef { loop in
      guard loop.isCurrent else { return loop.execute { self.suspended(job) } }
      suspended(job)
    }
  }

  /// Keeps the job of a task that waits now, or resumes it if the outcome is there.
  private nonisolated func suspended(_ job: UnownedJob) {
    if unsafe outcome == nil { unsafe self.job = job } else { resume(job) }
  }

  @inline(__always)
  private nonisolated func end(_ outcome: consuming Outcome?) {
    unsafe self.outcome = outcome
    if let job = unsafe job.take() { resume(job) }
  }

  /// Lets a task continue after its wait, in a job of the loop that is isolated to no actor.
  private nonisolated func resume(_ job: UnownedJob) {
    unsafe loop._withUnsafeGuaranteedRef { $0.enqueueOnTaskExecutor(ExecutorJob(job)) }
  }

  /// Suspends until the outcome is there.
  // Without an access to the actor, the compiler would not make the task enter it.
  fileprivate func wait() { precondition(unsafe outcome != nil) }

  /// Takes the outcome, after `wait`.
  fileprivate nonisolated func takeOutcome() -> Outcome { unsafe outcome.take()! }
}

#if compiler(<6.4) && !LONGLINK_PORTABLE
/// The function that `cll_task_watch` calls.
@_cdecl("cll_task_cancelled")
func taskCancelled(_ context: UnsafeMutableRawPointer) {
  // The waiting function holds it until `cll_task_unwatch` has returned.
  unsafe Unmanaged<RequestWatch>.fromOpaque(context).takeUnretainedValue().cancel()
}
#endif

/// Sends a request from a task, cancels it with the task, and returns the body of its response.
///
/// On the loop the request is sent within this call, and nothing is allocated for it here.
/// Elsewhere it goes to the loop in a job, and the task continues where it was.
// Neither generic nor inlined into a generic function: the record of cancellation is in the task's
// memory, which must be freed in reverse order.
@inline(never)
@usableFromInline package func awaitResponse(
  _ port: RequestPort, _ type: MessageType, _ body: RequestBody,
  _ options: RequestOptions
) async throws(LongLinkError) -> [UInt8] {
  try await response(port, type, body, options, nil)
}

/// Does the same as `awaitResponse`, for a request that is observed or intercepted.
@inline(never)
@usableFromInline package func awaitObservedResponse(
  _ port: RequestPort, _ type: MessageType, _ method: MethodName, _ body: RequestBody,
  _ options: RequestOptions
) async throws(LongLinkError) -> [UInt8] {
  var options = options
  let record = port.record(type, method, &options)
  if let record, let refusal = record.refusal {
    await port.loop.run { record.end(.failure(refusal)) }
    throw refusal
  }
  return try await response(port, type, body, options, record)
}

@inline(__always)
private func response(
  _ port: RequestPort, _ type: MessageType, _ body: RequestBody,
  _ options: RequestOptions, _ record: ExchangeRecord?
) async throws(LongLinkError) -> [UInt8] {
  let isHere = port.loop.isCurrent
  let watch = isHere ? port.takeWatch() : RequestWatch(port)
  let outcome =
    if isHere {
      await answerHere(port, type, body, options, record, watch)
    } else {
      await distantAnswer(port, type, body, options, record, watch)
    }
  // The watch of a task from elsewhere may still be used by the job that submitted the request.
  if isHere, port.loop.isCurrent { port.keep(consume watch) }
  switch consume outcome {
  case .success(let body): return body
  case .failure(let error): throw error
  }
}

/// Submits a request from a task on the loop, and waits for its outcome.
@inline(__always)
private func answerHere(
  _ port: RequestPort, _ type: MessageType, _ body: RequestBody, _ options: RequestOptions,
  _ observed: ExchangeRecord?, _ watch: RequestWatch
) async -> Outcome {
  #if compiler(<6.4) && !LONGLINK_PORTABLE
  let record = unsafe cll_task_watch(Unmanaged.passUnretained(watch).toOpaque())
  defer { unsafe cll_task_unwatch(record) }
  let isCancelled = watch.isCancelled
  #else
  let isCancelled = Task.isCancelled
  #endif
  if isCancelled { return await cancelled(port, type, options.ticket, observed) }
  let completion = Completion.waiter(RequestWatch.Waiter(watch))
  port.submit(type, body, options, completion.recorded(by: observed), watch)
  #if compiler(<6.4) && !LONGLINK_PORTABLE
  await watch.wait()
  #else
  // The operation returns nothing, so that the task leaves the watch only once.
  await withTaskCancellationHandler {
    await watch.wait()
  } onCancel: {
    watch.cancel()
  }
  #endif
  return watch.takeOutcome()
}

/// Submits a request from a task that is not on the loop, and waits for its outcome.
private func distantAnswer(
  _ port: RequestPort, _ type: MessageType, _ body: RequestBody, _ options: RequestOptions,
  _ observed: ExchangeRecord?, _ watch: RequestWatch
) async -> Outcome {
  // `#isolation` needs a statement of its own: as an operand of `&&` it would be nil.
  let actor = #isolation
  let isOfPool = actor == nil && runsOnPool()
  #if compiler(<6.4) && !LONGLINK_PORTABLE
  let record = unsafe cll_task_watch(Unmanaged.passUnretained(watch).toOpaque())
  defer { unsafe cll_task_unwatch(record) }
  return await submitted(port, type, body, options, observed, isOfPool, watch)
  #else
  return await withTaskCancellationHandler {
    await submitted(port, type, body, options, observed, isOfPool, watch)
  } onCancel: {
    watch.cancel()
  }
  #endif
}

/// Hands a request, whose task is watched, to the loop, and waits for its outcome.
private func submitted(
  _ port: RequestPort, _ type: MessageType, _ body: RequestBody, _ options: RequestOptions,
  _ observed: ExchangeRecord?, _ isOfPool: Bool, _ watch: RequestWatch
) async -> Outcome {
  if watch.isCancelled { return await cancelled(port, type, options.ticket, observed) }
  return await suspend { waiter in
    let waiting: Completion = isOfPool ? .pooledWaiter(waiter) : .distantWaiter(waiter)
    let completion = waiting.recorded(by: observed)
    // The task may have ended before the loop runs this.
    port.loop.execute { [options = copy options] in
      port.submit(type, body, options, completion, watch)
    }
  }
}

/// Returns the outcome of a request that was not submitted, because its task was cancelled.
private func cancelled(
  _ port: RequestPort, _ type: MessageType, _ ticket: OnceTicket?, _ record: ExchangeRecord?
) async -> Outcome {
  let outcome = Outcome.failure(
    LongLinkError(.cancelled, doing: .request(type)).covering(ticket))
  if let record { await port.loop.run { record.end(outcome) } }
  return outcome
}

/// Whether the current task, which is isolated to no actor, runs on the global pool with ordinary
/// priority.
private func runsOnPool() -> Bool {
  unsafe withUnsafeCurrentTask { task in
    guard let task = unsafe task else { return false }
    return unsafe task.unownedTaskExecutor == nil && task.priority <= .medium
  }
}
