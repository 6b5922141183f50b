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
  /// Ends a request with `cancelled`, unless it has ended.
  func cancel(_ id: RequestID)
  /// The state of a request; nil once it has ended.
  func state(of id: RequestID) -> RequestState?
}

/// The way of requests from tasks to a sink on its loop.
@safe @usableFromInline package final class RequestPort: Sendable {
  package let loop: EventLoop
  let sink: LoopBound<any RequestSink>
  /// Nil if nobody observes the requests.
  let observers: Observers?
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

  /// A watch for a request, with a reference that the caller owns; on the loop.
  @inline(__always)
  func takeWatch() -> Unmanaged<RequestWatch> {
    guard let watch = unsafe spare else {
      return unsafe Unmanaged.passRetained(RequestWatch(self))
    }
    unsafe spare = watch._withUnsafeGuaranteedRef { unsafe $0.next }
    unsafe spareCount &-= 1
    return unsafe watch
  }

  /// Keeps a watch that no task uses any more, with the caller's reference; on the loop.
  @inline(__always)
  func keep(_ watch: Unmanaged<RequestWatch>) {
    guard unsafe spareCount < RequestPort.mostSpare else { return unsafe watch.release() }
    unsafe watch._withUnsafeGuaranteedRef {
      $0.forget()
      unsafe $0.next = spare
    }
    unsafe spare = watch
    unsafe spareCount &+= 1
  }
}

/// Ends a request when the task that waits for it is cancelled.
@safe final class RequestWatch: Sendable {
  // The waiting function holds the port.
  private unowned(unsafe) let port: RequestPort
  private let serial = Atomic<UInt32>(0)
  /// The request's number, or one of the two values below.
  private let number = Atomic<UInt64>(RequestWatch.unnamed)

  /// The next spare watch; used on the loop, while no task uses this one.
  fileprivate nonisolated(unsafe) var next: Unmanaged<RequestWatch>?

  private static let unnamed = UInt64.max
  private static let cancelled = UInt64.max - 1

  init(_ port: RequestPort) {
    unsafe self.port = port
  }

  /// Whether its task was cancelled before the request was named.
  var isCancelled: Bool { number.load(ordering: .relaxed) == RequestWatch.cancelled }

  /// The request's identity; nil until it is named.
  var id: RequestID? {
    let number = number.load(ordering: .acquiring)
    guard number < RequestWatch.cancelled else { return nil }
    return RequestID(serial: serial.load(ordering: .relaxed), number: number)
  }

  /// Makes it ready for another request, once no task uses it.
  func forget() {
    number.store(RequestWatch.unnamed, ordering: .relaxed)
  }

  /// Names the request; returns false if its task was cancelled before.
  func begin(_ id: RequestID) -> Bool {
    serial.store(id.serial, ordering: .relaxed)
    return number.compareExchange(
      expected: RequestWatch.unnamed, desired: id.number, ordering: .acquiringAndReleasing
    ).exchanged
  }

  /// Handles the cancellation of the task; on any thread.
  func cancel() {
    let (isEarly, number) = number.compareExchange(
      expected: RequestWatch.unnamed, desired: RequestWatch.cancelled,
      ordering: .acquiringAndReleasing)
    guard !isEarly else { return }
    let id = RequestID(serial: serial.load(ordering: .relaxed), number: number)
    let port = unsafe port
    // The loop runs this after the job that submits the request.
    port.loop.execute { port.sink.value.cancel(id) }
  }
}

#if !LONGLINK_PORTABLE
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
  let isHere = port.loop.isCurrent
  // A statement of its own: as an operand of `&&` it would be nil.
  let actor = #isolation
  let place: CallerContext = isHere ? .loop : actor == nil && runsOnPool() ? .pool : .elsewhere
  // This function owns the reference until its end.
  let watch =
    unsafe isHere ? port.takeWatch() : Unmanaged.passRetained(RequestWatch(port))
  #if LONGLINK_PORTABLE
  let watched = unsafe watch.takeUnretainedValue()
  let outcome = await withTaskCancellationHandler {
    unsafe await answer(port, type, body, options, place, watch)
  } onCancel: {
    watched.cancel()
  }
  #else
  let record = unsafe cll_task_watch(watch.toOpaque())
  let outcome = unsafe await answer(port, type, body, options, place, watch)
  unsafe cll_task_unwatch(record)
  #endif
  if port.loop.isCurrent { unsafe port.keep(watch) } else { unsafe watch.release() }
  switch consume outcome {
  case .success(let body): return body
  case .failure(let error): throw error
  }
}

/// The place where the calling task runs.
private enum CallerContext {
  case loop
  case pool
  case elsewhere
}

/// Submits a request whose task is watched, and waits for its outcome.
@inline(__always)
private func answer(
  _ port: RequestPort, _ type: MessageType, _ body: RequestBody, _ options: RequestOptions,
  _ place: CallerContext, _ watch: Unmanaged<RequestWatch>
) async -> Outcome {
  if unsafe watch._withUnsafeGuaranteedRef({ $0.isCancelled }) {
    let outcome = Outcome.failure(LongLinkError(.cancelled, doing: .request(type)))
    if let record = port.record(type, options) { port.loop.execute { record.end(outcome) } }
    return outcome
  }
  return await suspend { waiter in
    #if LONGLINK_PORTABLE
    // The documented functions may have left the loop.
    let isHere = port.loop.isCurrent
    #else
    let isHere = place == .loop
    #endif
    if isHere {
      #if compiler(<6.4) && !LONGLINK_PORTABLE
      waiter.resume(by: port)
      #endif
      unsafe watch._withUnsafeGuaranteedRef { watch in
        let completion = Completion.waiter(waiter).recorded(by: port.record(type, options))
        port.submit(type, body, options, completion, watch)
      }
    } else {
      let waiting: Completion = place == .pool ? .pooledWaiter(waiter) : .distantWaiter(waiter)
      let completion = waiting.recorded(by: port.record(type, options))
      // The task may have ended before the loop runs this.
      port.loop.execute { [watch = unsafe watch.takeUnretainedValue(), options = copy options] in
        port.submit(type, body, options, completion, watch)
      }
    }
  }
}

/// Whether the current task, which is isolated to no actor, runs on the global pool with ordinary
/// priority.
private func runsOnPool() -> Bool {
  unsafe withUnsafeCurrentTask { task in
    guard let task = unsafe task else { return false }
    return unsafe task.unownedTaskExecutor == nil && task.priority <= .medium
  }
}
