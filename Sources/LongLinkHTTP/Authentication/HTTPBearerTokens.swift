// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkDriver
internal import LongLinkTransport
internal import NIOCore
internal import Synchronization

/// A bearer token that can be renewed. One renewal serves all requests that wait for it.
///
/// Requests of any number of services can share one value. It may be used from any thread.
public final class HTTPBearerTokens: Sendable {
  private typealias Waiter = Gate<Result<String, any Error>>

  private struct State {
    var token: String?
    var isRenewing = false
    /// Who waits for the renewal, by number.
    var waiters: [UInt64: Waiter] = [:]
    var lastWaiter: UInt64 = 0
  }

  /// Tells one value from another, also when it is gone.
  let number = UniqueNumber.next()
  private let state: Mutex<State>
  private let renew: @Sendable (_ rejected: String?) async throws -> String

  /// Makes tokens of a first one, if there is one, and a function that gets others.
  ///
  /// `renew` is called when there is no token, and when a server has rejected the last one, which
  /// is its argument. It runs in a task of its own, at most one at a time; a request that is
  /// cancelled does not cancel it. If it throws, all requests that wait for it fail with 401.
  public init(
    _ token: String? = nil, renew: @escaping @Sendable (_ rejected: String?) async throws -> String
  ) {
    state = Mutex(State(token: token))
    self.renew = renew
  }

  /// The token that requests send at present; nil if there is none.
  public var current: String? { state.withLock(of: self) { $0.token } }

  /// Returns a token that is not the rejected one. Throws `HTTPFailure.deadline` at the deadline.
  func token(
    insteadOf rejected: String?,
    deadline: (at: NIODeadline, loop: any NIOCore.EventLoop)? = nil
  ) async throws -> String {
    let waiter = Waiter()
    let (token, number, begins) = state.withLock(of: self) { state -> (String?, UInt64, Bool) in
      if let token = state.token, token != rejected { return (token, 0, false) }
      state.lastWaiter += 1
      state.waiters[state.lastWaiter] = waiter
      defer { state.isRenewing = true }
      return (nil, state.lastWaiter, !state.isRenewing)
    }
    if let token { return token }
    if begins { begin(insteadOf: rejected) }
    let timer = deadline.map { deadline in
      deadline.loop.scheduleTask(deadline: deadline.at) {
        waiter.open(.failure(HTTPFailure.deadline))
      }
    }
    defer {
      timer?.cancel()
      state.withLock(of: self) { _ = $0.waiters.removeValue(forKey: number) }
    }
    return try await withTaskCancellationHandler {
      try await waiter.value.get()
    } onCancel: {
      waiter.open(.failure(CancellationError()))
    }
  }

  /// Gets another token. It goes on for the others when the one that began it stops waiting.
  private func begin(insteadOf rejected: String?) {
    Task { [self] in
      let result: Result<String, any Error>
      do {
        result = .success(try await renew(rejected))
      } catch {
        result = .failure(error)
      }
      let waiters = state.withLock(of: self) { state -> [Waiter] in
        state.isRenewing = false
        if case .success(let token) = result { state.token = token }
        defer { state.waiters = [:] }
        return Array(state.waiters.values)
      }
      for waiter in waiters { waiter.open(result) }
    }
  }
}
#endif
