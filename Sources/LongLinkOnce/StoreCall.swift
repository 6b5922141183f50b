// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport

/// One call of a store, which is waited for within a bound. Used on its loop alone.
final class StoreCall<Value: Sendable>: TimerHandler {
  /// How a call has ended. A late one ends twice, if the store returns after all.
  enum Outcome {
    case returned(Result<Value, any Error>)
    case late
    case returnedLate(Result<Value, any Error>)
  }

  private let loop: EventLoop
  private let then: (Outcome) -> Void
  private var timer: LoopTimer?

  private init(on loop: EventLoop, _ then: @escaping (Outcome) -> Void) {
    self.loop = loop
    self.then = then
  }

  /// Begins a call, for at most a time in nanoseconds; on the loop.
  static func begin(
    on loop: EventLoop, within time: Int64,
    _ body: @escaping @Sendable () async throws -> Value,
    then: @escaping (Outcome) -> Void
  ) {
    let call = StoreCall(on: loop, then)
    call.timer = loop.schedule(at: loop.now + time, call, token: 0)
    let reference = LoopBound(call, on: loop)
    // Not on a real loop, which a store that blocks would stop; in a simulation there is no other
    // place.
    Task(executorPreference: loop.isOfSystem ? globalConcurrentExecutor : loop) {
      let result: Result<Value, any Error>
      do { result = .success(try await body()) } catch { result = .failure(error) }
      loop.execute { reference.value.returned(result) }
    }
  }

  private func returned(_ result: Result<Value, any Error>) {
    guard let timer else { return then(.returnedLate(result)) }
    loop.cancel(timer)
    self.timer = nil
    then(.returned(result))
  }

  func timerFired(token: UInt64) {
    timer = nil
    then(.late)
  }
}
