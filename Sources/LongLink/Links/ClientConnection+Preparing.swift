// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
@_spi(Loop) import LongLinkTransport

/// Lets the application's `prepare` function use a connection before the client does.
///
/// The function runs in a task on the client's loop. Until it has returned, the peer that it gets
/// sends over this connection; afterwards, over the client's.
extension ClientConnection {
  /// One call of the `prepare` function.
  struct Preparation {
    let task: Task<Void, Never>
    let caller: Caller
    /// The pushes of the function. None of them waits for room.
    let pushes: PushQueue
  }

  /// Holds the connection for the task of a `prepare` call while its result matters. Otherwise a
  /// function that ignores its cancellation would retain the connection and the client.
  final class Caller {
    var connection: ClientConnection?

    init(_ connection: ClientConnection) {
      self.connection = connection
    }
  }

  var isPreparing: Bool { if case .preparing = stage { true } else { false } }

  /// Calls the application's `prepare` function.
  func prepare() {
    guard link.isOpen, let prepare = core.configuration.prepare else { return }
    if case .tried(let start) = stage {
      core.counters.trialsPassed += 1
      stage = .preparing(since: start)
    } else {
      stage = .preparing(since: core.loop.now)
    }
    requests.prepare(link)
    peer.attach(to: self)
    let caller = Caller(self)
    let bound = LoopBound(caller, on: core.loop)
    let task = Task(executorPreference: core.loop) { [peer] in
      let result: Result<Void, any Error>
      do {
        result = .success(try await prepare(peer))
      } catch {
        result = .failure(error)
      }
      bound.loop.execute { bound.value.connection?.returned(result) }
    }
    preparation = Preparation(
      task: task, caller: caller,
      pushes: PushQueue(
        maxWaiting: 0, maxWaitingBytes: 0, timeout: core.defaults.timeout, on: core.loop))
  }

  private func returned(_ result: Result<Void, any Error>) {
    // The result does not matter any more if the connection has ended, or is about to.
    guard case .preparing(let start) = stage, link.isOpen else { return }
    switch result {
    case .success: core.tell(.long(.prepared(link.id, terms(since: start))))
    case .failure(let error):
      let text = error is LongLinkError ? "\(error)" : "\(PeerText("\(error)"))"
      giveUp(because: "`prepare` failed: \(text)")
      core.tell(.long(.notPrepared(link.id)))
    }
  }

  /// Ends the preparation: from now on, the peer sends over the client's current connection.
  func endPreparation() {
    preparation?.caller.connection = nil
    preparation = nil
    peer.attach(to: core)
  }

  /// Cancels the call of `prepare`, because the connection has ended or is not going to be used.
  /// Nothing waits for it any more.
  func cancelPreparation() {
    guard let preparation, preparation.caller.connection != nil else { return }
    preparation.task.cancel()
    preparation.caller.connection = nil
    requests.unpark()
  }

  /// Handles a goaway while `prepare` runs: the link finishes the requests that the server has
  /// accepted, and carries nothing else.
  func leftUnprepared(_ goaway: GoAway) {
    core.counters.failedAttempts += 1
    cancelPreparation()
    requests.leaving(
      link, accepted: goaway.requestsAccepted, code: ResponseCode(wire: goaway.code),
      reason: goaway.reason, acceptsNext: false)
  }
}

extension ClientConnection: PeerOwner {
  var requestsIfAny: Requests? { requests }
  var pushesIfAny: PushQueue? { preparation?.pushes }

  func submit(
    _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
    _ completion: consuming Completion
  ) -> RequestID {
    guard !isPreparing else {
      return requests.submit(
        type, body, options, completion, defaults: core.defaults, over: link)
    }
    return requests.submit(
      type, body, options, completion, defaults: core.defaults, failure: peer.endedError)
  }

  func submit(
    _ type: MessageType, _ body: RequestBody, _ options: RequestOptions, _ completion: Completion,
    after delay: Int64
  ) -> RequestID {
    requests.submit(type, body, options, completion, defaults: core.defaults) { [link] operation in
      LongLinkError(
        .unsupported, doing: operation,
        detail: "a stream is not opened again while its connection is prepared", peer: link.peer)
    }
  }

  var reconnect: ReconnectPolicy { core.reconnect }

  func wayOfPush(_ type: MessageType) throws(LongLinkError) -> (PushQueue, Link) {
    guard let preparation, isPreparing else { throw peer.endedError(doing: .push(type)) }
    return (preparation.pushes, link)
  }

  func cancel(_ id: RequestID) { requests.cancel(id) }

  func state(of id: RequestID) -> RequestState? { requests.state(of: id) }

  func perform(_ command: PeerCommand, on id: UInt64) { core.perform(command, on: id) }
}
