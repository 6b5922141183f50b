// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
import LongLinkTransport

extension ClientCore {
  /// A close in progress.
  struct Closing {
    var timer: LoopTimer?
    var waiters: [@Sendable () -> Void]
    /// Whether only the ends of the connections are still awaited.
    var isFinishing = false
    /// Whether the last connection has ended.
    var hasEnded = false
  }

  /// Closes the client: if `bound` is nil, aborts what is in flight; otherwise waits for it for up
  /// to `bound` nanoseconds.
  func close(within bound: Int64?, _ completion: @escaping @Sendable () -> Void) {
    if closing == nil {
      closing = Closing(waiters: [completion])
      if let bound, bound > 0, hasWork {
        closing?.timer = loop.schedule(
          at: loop.now + bound, self, token: Timer.closing.rawValue)
        return
      }
      finishClosing(aborts: bound == nil)
    } else if closing?.hasEnded == true {
      loop.execute(completion)
    } else {
      closing?.waiters.append(completion)
      if bound == nil { finishClosing(aborts: true) }
    }
  }

  /// Whether requests or pushes have not ended, or output has not been written.
  private var hasWork: Bool {
    requests.count > 0 || pushes.count > 0
      || connections.contains { !$0.link.connection.outbox.isEmpty }
      || shortLinks?.hasWork == true
  }

  /// Continues closing once nothing is in flight.
  func finishClosingIfDone() {
    guard let closing, !closing.isFinishing, !hasWork else { return }
    finishClosing(aborts: false)
  }

  func closingElapsed() {
    closing?.timer = nil
    finishClosing(aborts: true)
  }

  private func finishClosing(aborts: Bool) {
    closing?.isFinishing = true
    if let timer = closing?.timer { loop.cancel(timer) }
    closing?.timer = nil
    note(.closed)
    credentials?.stop()
    requests.failWaiting(all: true) { operation, _ in
      LongLinkError(.closed, doing: operation, detail: "the client was closed")
    }
    for connection in connections {
      if aborts {
        connection.link.close(.closedHere)
      } else {
        connection.link.shutDown()
      }
    }
    shortLinks?.closeAll(aborts: aborts)
    resumeConnectWaiters(
      .failure(LongLinkError(.closed, doing: "connect", detail: "the client was closed")))
    settle()
  }

  /// Completes the close once the last connection has ended.
  func completeClosing() {
    guard let closing, closing.isFinishing, !closing.hasEnded, hasNoLinks else { return }
    self.closing?.waiters = []
    self.closing?.hasEnded = true
    requests.stop()
    hub.close()
    show(.closed)
    // Deferred, so that completions of requests that failed at once, which are queued on the loop,
    // run first.
    for waiter in closing.waiters { loop.execute(waiter) }
  }
}
