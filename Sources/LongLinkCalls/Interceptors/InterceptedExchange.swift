// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
@_spi(Loop) import LongLinkTransport

/// One exchange with interceptors around it, on its loop.
///
/// The interceptors run in a task, and may make any number of requests. The exchange ends exactly
/// once, whatever they do: when they return, when it is cancelled, and at its deadline. It then
/// waits for its requests alone, which end at once, so that its error covers all of them.
final class InterceptedExchange {
  private enum Ending {
    case returned(Outcome)
    case cancelled
    case late
  }

  private let core: CallCore
  private let plan: CallPlan
  private let deadline: LinkInstant
  private let completion: (Outcome) -> Void
  private var loop: EventLoop { core.loop }
  private var task: Task<Void, Never>?
  private var timer: LoopTimer?
  /// The requests that have not ended.
  private var running: [UInt64: any CallExchange] = [:]
  private var lastNumber: UInt64 = 0
  /// The delivery of all requests that have ended, taken together.
  private var delivery = Delivery.notSent
  /// The error of a request that ran into the deadline: it says what the request waited for.
  private var lateness: LongLinkError?
  /// How the exchange has ended; set once.
  private var ending: Ending?

  /// `completion` is called once, in a later job of the loop.
  init(
    _ plan: CallPlan, until deadline: LinkInstant, _ core: CallCore,
    _ completion: @escaping (Outcome) -> Void
  ) {
    self.core = core
    self.plan = plan
    self.deadline = deadline
    self.completion = completion
  }

  /// Starts the interceptors, and returns a handle that cancels the exchange.
  func begin(_ options: RequestOptions, isRefresh: Bool) -> any CallExchange {
    timer = loop.schedule(at: deadline, self, token: 0)
    let request = OutboundRequest(
      type: plan.type, service: plan.method.service,
      operation: plan.operation.text(of: plan.method.text),
      body: plan.body, options: options, deadline: deadline, isRefresh: isRefresh,
      clock: loop.clock)
    let bound = LoopBound(self, on: loop)
    let whole = NextExchange(
      core.configuration.interceptors, of: bound, doing: plan.operation)
    // Detached, because inherited task-local values would depend on the thread of the first call.
    task = Task.detached(executorPreference: loop) {
      let outcome: Outcome
      do throws(LongLinkError) {
        outcome = .success(try await whole(request))
      } catch {
        outcome = .failure(error)
      }
      bound.loop.execute { bound.value.end(.returned(outcome)) }
    }
    return Handle(exchange: bound)
  }

  /// Cancels the exchange from any thread.
  private struct Handle: CallExchange {
    let exchange: LoopBound<InterceptedExchange>

    func cancel() {
      exchange.loop.execute { exchange.value.end(.cancelled) }
    }
  }
}

// MARK: - Requests

extension InterceptedExchange {
  /// Makes a request. Returns its number, or nil if the exchange has ended.
  fileprivate func send(
    _ request: OutboundRequest, _ completion: @escaping @Sendable (Outcome) -> Void
  ) -> UInt64? {
    guard ending == nil else {
      completion(
        .failure(
          LongLinkError(.cancelled, doing: plan.operation, detail: "the call has ended")))
      return nil
    }
    lastNumber += 1
    let number = lastNumber
    var options = request.options
    let left = loop.now.duration(to: deadline)
    options.timeout = options.timeout.map { min($0, left) } ?? left
    let bound = LoopBound(self, on: loop)
    running[number] = core.carry(plan, options) { outcome in
      bound.value.ended(number, outcome)
      completion(outcome)
    }
    return number
  }

  /// Cancels a request whose waiting task was cancelled.
  fileprivate func cancel(_ number: UInt64) {
    running[number]?.cancel()
  }

  private func ended(_ number: UInt64, _ outcome: Outcome) {
    running[number] = nil
    switch outcome {
    case .success:
      delivery = Delivery.answered.after(delivery)
    case .failure(let error):
      delivery = error.delivery.after(delivery)
      if error.code == .deadlineExceeded { lateness = error }
    }
    if ending != nil { finishIfDone() }
  }
}

/// Makes a request on the loop, and waits for its response.
func response(
  to request: OutboundRequest, by exchange: LoopBound<InterceptedExchange>,
  doing operation: LongLinkError.Operation
) async throws(LongLinkError) -> [UInt8] {
  if Task.isCancelled {
    throw LongLinkError(.cancelled, doing: operation, detail: "an interceptor was cancelled")
  }
  let loop = exchange.loop
  let gate = Gate<Outcome>()
  let number = LoopBound(RequestNumber(), on: loop)
  loop.runOnLoop {
    number.value.value = exchange.value.send(request) { gate.open($0) }
  }
  let outcome = await withTaskCancellationHandler {
    await gate.value
  } onCancel: {
    loop.execute {
      if let number = number.value.value { exchange.value.cancel(number) }
    }
  }
  return try outcome.get()
}

/// The number of a request, assigned on the loop.
private final class RequestNumber {
  var value: UInt64?
}

// MARK: - The end

extension InterceptedExchange: TimerHandler {
  func timerFired(token: UInt64) {
    timer = nil
    end(.late)
  }

  private func end(_ ending: Ending) {
    guard self.ending == nil else { return }
    self.ending = ending
    if let timer { loop.cancel(timer) }
    timer = nil
    task?.cancel()
    task = nil
    // At the deadline the requests end by themselves, with errors that say more than `cancelled`.
    if case .late = ending {
    } else {
      for number in running.keys.sorted() { running[number]?.cancel() }
    }
    finishIfDone()
  }

  private func finishIfDone() {
    guard let ending, running.isEmpty else { return }
    switch ending {
    case .returned(let outcome):
      completion(outcome.mapError { $0.with(delivery: delivery) })
    case .cancelled:
      completion(
        .failure(LongLinkError(.cancelled, delivery: delivery, doing: plan.operation)))
    case .late:
      let error =
        lateness
        ?? LongLinkError(
          .deadlineExceeded, doing: plan.operation, detail: "an interceptor has not returned")
      completion(.failure(error.with(delivery: delivery)))
    }
  }
}
