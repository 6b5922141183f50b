// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkDriver
internal import LongLinkTransport
internal import NIOCore
internal import Synchronization

/// A bearer token that can be renewed. One renewal serves all requests that wait for it.
///
/// A server that rejects each token, or a renewal that fails, does not cause endless renewals.
/// After a server has rejected a token and it was renewed, no other renewal is made for that server
/// until it has answered a request with 2xx, or a pause is over: 1 s, which doubles with each such
/// renewal up to 30 s. After a renewal that has thrown, the same pauses hold for all servers.
/// Meanwhile requests that need another token fail with `rejected` and the response 401.
///
/// Requests of any number of services can share one value. It may be used from any thread.
public final class HTTPBearerTokens: Sendable {
  private typealias Waiter = Gate<Result<String, any Error>>

  /// Consecutive renewals that did not help, and when the next one may begin.
  private struct Renewals {
    var count = 0
    var nextAt: ContinuousClock.Instant

    mutating func add(at now: ContinuousClock.Instant) {
      nextAt = now + .seconds(min(1 << min(count, 5), 30))
      count += 1
    }
  }

  private struct State {
    var token: String?
    var isRenewing = false
    /// The requests that wait for the renewal, by number.
    var waiters: [UInt64: Waiter] = [:]
    var lastWaiter: UInt64 = 0
    /// The renewals for each server, by origin, since the server last accepted a token.
    var renewals: [String: Renewals] = [:]
    /// The consecutive renewals that have thrown, and the last error; nil if the last renewal
    /// succeeded.
    var failures: (renewals: Renewals, last: any Error)?

    func pause(for origin: String, at now: ContinuousClock.Instant) -> Pause? {
      let next = max(renewals[origin]?.nextAt ?? now, failures?.renewals.nextAt ?? now)
      return next > now ? Pause(remaining: now.duration(to: next), failure: failures?.last) : nil
    }
  }

  /// Why no token is renewed at present.
  struct Pause: Error, CustomStringConvertible {
    /// The time until the next renewal may begin.
    let remaining: Duration
    /// The error of the last renewal; nil if it succeeded, and the server rejected the token.
    let failure: (any Error)?

    var description: String {
      let cause =
        failure.map { "the last renewal failed (\($0))" } ?? "a renewed token was rejected"
      let seconds = max(1, remaining.components.seconds)
      return "\(cause), and the next renewal begins in \(seconds) s at the earliest"
    }
  }

  /// Identifies this value, even after it is gone.
  let number = UniqueNumber.next()
  private let state: Mutex<State>
  private let renew: @Sendable (_ rejected: String?) async throws -> String
  private let now: @Sendable () -> ContinuousClock.Instant

  /// Makes tokens from an initial token, which may be nil, and a function that gets new ones.
  ///
  /// `renew` returns a new token. It gets the token that a server has rejected, or nil if there is
  /// none yet. It runs in a task of its own, at most one at a time; cancelling a request does not
  /// cancel it. If it throws, all requests that wait for it fail with `rejected` and the response
  /// 401. A token consists of visible ASCII characters: with any other character, requests fail
  /// with `encodingFailed`.
  public convenience init(
    _ token: String? = nil, renew: @escaping @Sendable (_ rejected: String?) async throws -> String
  ) {
    self.init(token, now: { .now }, renew: renew)
  }

  init(
    _ token: String?, now: @escaping @Sendable () -> ContinuousClock.Instant,
    renew: @escaping @Sendable (_ rejected: String?) async throws -> String
  ) {
    state = Mutex(State(token: token))
    self.now = now
    self.renew = renew
  }

  /// The token that requests send at present; nil if there is none.
  public var current: String? { state.withLock(of: self) { $0.token } }

  /// Records that a server has accepted the token.
  func accepted(by origin: String) {
    state.withLock(of: self) { _ = $0.renewals.removeValue(forKey: origin) }
  }

  /// Why no token other than the rejected one can be had now; nil if one can be.
  func pause(insteadOf rejected: String?, for origin: String) -> Pause? {
    state.withLock(of: self) { state in
      let isAtHand = state.isRenewing || state.token != nil && state.token != rejected
      return isAtHand ? nil : state.pause(for: origin, at: now())
    }
  }

  /// Returns a token other than the rejected one, for the server at an origin.
  ///
  /// Throws `HTTPFailure.deadline` at the deadline, and a `Pause` if no token is renewed at
  /// present.
  func token(
    insteadOf rejected: String?, for origin: String,
    deadline: (at: NIODeadline, loop: any NIOCore.EventLoop)? = nil
  ) async throws -> String {
    enum Next {
      case use(String)
      case wait(UInt64, begins: Bool)
      case fail(Pause)
    }
    let waiter = Waiter()
    let next = state.withLock(of: self) { state -> Next in
      if let token = state.token, token != rejected { return .use(token) }
      let begins = !state.isRenewing
      if begins {
        if let pause = state.pause(for: origin, at: now()) { return .fail(pause) }
        state.isRenewing = true
      }
      state.lastWaiter += 1
      state.waiters[state.lastWaiter] = waiter
      return .wait(state.lastWaiter, begins: begins)
    }
    let number: UInt64
    switch next {
    case .use(let token): return token
    case .fail(let pause): throw pause
    case .wait(let waiting, let begins):
      number = waiting
      if begins { begin(insteadOf: rejected, for: origin) }
    }
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

  /// Renews the token. The renewal goes on for other requests when the one that began it stops
  /// waiting.
  private func begin(insteadOf rejected: String?, for origin: String) {
    Task { [self] in
      let result: Result<String, any Error>
      do {
        result = .success(try await renew(rejected))
      } catch {
        result = .failure(error)
      }
      let waiters = state.withLock(of: self) { state -> [Waiter] in
        state.isRenewing = false
        let now = now()
        switch result {
        case .success(let token):
          state.token = token
          state.failures = nil
          // The first token may be an old one that `renew` has kept: no server has rejected it yet.
          if rejected != nil {
            // Drops servers whose pauses are long over: they begin anew.
            if state.renewals.count >= 256 {
              state.renewals = state.renewals.filter { $0.value.nextAt + .seconds(30) > now }
            }
            state.renewals[origin, default: Renewals(nextAt: now)].add(at: now)
          }
        case .failure(let error):
          var renewals = state.failures?.renewals ?? Renewals(nextAt: now)
          renewals.add(at: now)
          state.failures = (renewals, error)
        }
        defer { state.waiters = [:] }
        return Array(state.waiters.values)
      }
      for waiter in waiters { waiter.open(result) }
    }
  }
}
#endif
