// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
@_spi(Loop) import LongLinkTransport

/// Calls that were made together: watched, cancelled and awaited as one.
///
/// It may be used from any thread. Letting go of it changes nothing: the calls go on.
public final class CallGroup<Reply: Sendable>: Sendable {
  /// How the calls are made.
  public let policy: GroupPolicy
  private let run: LoopBound<GroupRun<Reply>>
  private let loop: EventLoop
  private let done: Gate<[Result<Reply, CallError>]>

  init(_ calls: [Call<Reply>], _ policy: GroupPolicy, _ api: CallClient) {
    self.policy = policy
    loop = api.client.loop
    let done = Gate<[Result<Reply, CallError>]>()
    self.done = done
    run = LoopBound(GroupRun(calls, policy, api.core, api.configuration, done), on: loop)
    loop.runOnLoop { [run] in run.value.pump() }
  }

  /// The progress now, then at each end of a call; the sequence ends with the group.
  ///
  /// Nothing is left out: there are as many elements to come as calls that have not ended.
  public func progress() -> AsyncStream<GroupProgress> {
    let (stream, continuation) = AsyncStream.makeStream(of: GroupProgress.self)
    loop.runOnLoop { [run] in run.value.watch(continuation) }
    return stream
  }

  /// How the calls ended, in the order in which they were given.
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

  /// The replies, in the order in which the calls were given.
  ///
  /// Throws the failure of the first in that order which failed by itself, else the first failure;
  /// `GroupPolicy.Failures.stop` saves the others. Cancelling the waiting task cancels the group.
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

  /// Begins no more calls, and cancels those that are under way; they end with `cancelled`.
  public func cancel() {
    loop.runOnLoop { [run] in run.value.cancel() }
  }
}

extension CallClient {
  /// Makes many calls, some of them at once.
  ///
  /// Calls of different replies go into one group when `map` gives them a common one. A policy
  /// with fewer than one call at once is a programming error.
  public func group<Reply>(
    _ calls: [Call<Reply>], _ policy: GroupPolicy = GroupPolicy()
  ) -> CallGroup<Reply> {
    precondition(policy.maxConcurrent >= 1, "a group has at least one call under way")
    return CallGroup(calls, policy, self)
  }
}
