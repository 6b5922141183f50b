// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
@_spi(Loop) import LongLinkTransport

/// A group of calls on its loop.
final class GroupRun<Reply: Sendable> {
  private let core: LoopBound<CallCore>
  private let configuration: CallConfiguration
  private let maxConcurrent: Int
  private let mostFailures: Int?
  private let calls: [Call<Reply>]
  private var results: [Result<Reply, CallError>?]
  /// The running calls by index; `id` is nil until the core has returned one.
  private var running: [(place: Int, id: UInt64?)] = []
  private var next = 0
  private var progress: GroupProgress
  private var isStopped = false
  private var isPumping = false
  private var isDone = false
  private var watchers: [AsyncStream<GroupProgress>.Continuation] = []
  private let done: Gate<[Result<Reply, CallError>]>

  init(
    _ calls: [Call<Reply>], _ maxConcurrent: Int, _ mostFailures: Int?,
    _ core: LoopBound<CallCore>,
    _ configuration: CallConfiguration, _ done: Gate<[Result<Reply, CallError>]>
  ) {
    self.core = core
    self.configuration = configuration
    self.maxConcurrent = maxConcurrent
    self.mostFailures = mostFailures
    self.calls = calls
    self.done = done
    results = Array(repeating: nil, count: calls.count)
    progress = GroupProgress(total: calls.count)
  }

  /// Begins calls up to the limit.
  func pump() {
    // A call may end at once and re-enter; the outer call continues.
    guard !isPumping else { return }
    isPumping = true
    while next < calls.count, isStopped || running.count < maxConcurrent {
      let place = next
      next += 1
      if isStopped {
        end(place, .failure(cancelled(calls[place])))
      } else {
        begin(place)
      }
    }
    isPumping = false
    finishIfDone()
  }

  private func begin(_ place: Int) {
    do throws(CallError) {
      let call = try PreparedCall(calls[place], configuration)
      running.append((place, nil))
      let id = core.value.begin(call) { [self] result in ended(place, result) }
      if let index = running.firstIndex(where: { $0.place == place }) { running[index].id = id }
    } catch {
      end(place, .failure(error))
    }
  }

  private func ended(_ place: Int, _ result: Result<Reply, CallError>) {
    running.removeAll { $0.place == place }
    end(place, result)
    pump()
  }

  private func end(_ place: Int, _ result: Result<Reply, CallError>) {
    results[place] = result
    progress.finished += 1
    progress.last = place
    if case .failure = result { progress.failed += 1 }
    for watcher in watchers { watcher.yield(progress) }
    if let mostFailures, progress.failed > mostFailures { stop() }
  }

  /// Cancels the running calls and begins no more.
  func cancel() {
    stop()
    pump()
  }

  private func stop() {
    guard !isStopped else { return }
    isStopped = true
    // A call that ends meanwhile removes itself from `running`.
    for call in running {
      if let id = call.id { core.value.leave(id) }
    }
  }

  private func cancelled(_ call: Call<Reply>) -> CallError {
    configuration.describe(
      LongLinkError(
        .cancelled, doing: call.operation, detail: "its group was stopped before it began"),
      of: call)
  }

  private func finishIfDone() {
    guard !isDone, progress.finished == calls.count else { return }
    isDone = true
    for watcher in watchers { watcher.finish() }
    watchers = []
    done.open(results.compactMap { $0 })
  }

  /// Adds a watcher, which gets the current progress and each later one.
  func watch(_ watcher: AsyncStream<GroupProgress>.Continuation) {
    watcher.yield(progress)
    if isDone {
      watcher.finish()
    } else {
      watchers.append(watcher)
    }
  }
}
