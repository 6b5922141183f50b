// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
@_spi(Loop) import LongLinkTransport

/// A handle on calls that were made together: you can observe, cancel and await them as one.
///
/// It may be used from any thread. Releasing it does not cancel the calls.
public final class CallGroup<Reply: Sendable>: Sendable {
  private let run: LoopBound<GroupRun<Reply>>
  private let loop: EventLoop
  private let done: Gate<[Result<Reply, CallError>]>

  init(_ calls: [Call<Reply>], _ maxConcurrent: Int, _ mostFailures: Int?, _ api: CallClient) {
    loop = api.client.loop
    let done = Gate<[Result<Reply, CallError>]>()
    self.done = done
    run = LoopBound(
      GroupRun(calls, maxConcurrent, mostFailures, api.core, api.configuration, done), on: loop)
    loop.runOnLoop { [run] in run.value.pump() }
  }

  /// Returns a sequence of the current progress, then one element for each call that ends.
  ///
  /// The sequence ends with the group. It is buffered without limit, so no element is dropped.
  public func progress() -> AsyncStream<GroupProgress> {
    let (stream, continuation) = AsyncStream.makeStream(of: GroupProgress.self)
    loop.runOnLoop { [run] in run.value.watch(continuation) }
    return stream
  }

  /// The results of the calls in their given order, once all have ended.
  ///
  /// Cancelling the waiting task cancels the group.
  public var results: [Result<Reply, CallError>] {
    get async {
      await withTaskCancellationHandler {
        await done.value
      } onCancel: {
        cancel()
      }
    }
  }

  /// The replies of the calls in their given order, once all have ended.
  ///
  /// Throws the first error in that order that is not `cancelled`, or else the first error. If the
  /// group was made with `mostFailures: 0`, the remaining calls are not made after a failure.
  /// Cancelling the waiting task cancels the group.
  public var values: [Reply] {
    get async throws(CallError) {
      let results = await results
      let failures = results.compactMap { result -> CallError? in
        if case .failure(let error) = result { error } else { nil }
      }
      if let failure = failures.first(where: { $0.code != .cancelled }) ?? failures.first {
        throw failure
      }
      var values: [Reply] = []
      for result in results { values.append(try result.get()) }
      return values
    }
  }

  /// Cancels the running calls and begins no more; all of them end with `cancelled`.
  public func cancel() {
    loop.runOnLoop { [run] in run.value.cancel() }
  }
}

extension CallClient {
  /// Makes many calls, a limited number of them concurrently.
  ///
  /// The calls begin at once, in their order, at most `maxConcurrent` at a time (default 4). It
  /// traps if `maxConcurrent` is below 1. To put calls with different replies into one group, give
  /// them a common type with `map`.
  ///
  /// When more than `mostFailures` calls have failed, the running calls are cancelled and no more
  /// are begun: with 0, at the first failure. With nil, the default, every call is made.
  public func group<Reply>(
    _ calls: [Call<Reply>], maxConcurrent: Int = 4, mostFailures: Int? = nil
  ) -> CallGroup<Reply> {
    precondition(maxConcurrent >= 1, "maxConcurrent must be at least 1")
    return CallGroup(calls, maxConcurrent, mostFailures, self)
  }
}
