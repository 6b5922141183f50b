// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import LongLinkDriver
internal import LongLinkTransport
internal import Synchronization

/// A bearer token that can be renewed. One renewal serves all requests that wait for it.
///
/// Requests of any number of services can share one value. It may be used from any thread.
public final class HTTPBearerTokens: Sendable {
  private typealias Renewal = Gate<Result<String, any Error>>

  private struct State {
    var token: String?
    var renewal: Renewal?
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

  /// Returns a token that is not the rejected one.
  func token(insteadOf rejected: String?) async throws -> String {
    let (token, renewal, begins) = state.withLock(of: self) {
      state -> (String?, Renewal, Bool) in
      if let token = state.token, token != rejected { return (token, Renewal(), false) }
      if let renewal = state.renewal { return (nil, renewal, false) }
      let renewal = Renewal()
      state.renewal = renewal
      return (nil, renewal, true)
    }
    if let token { return token }
    if begins {
      // It goes on for the others when the one that began it is cancelled.
      Task { [self] in
        let result: Result<String, any Error>
        do {
          result = .success(try await renew(rejected))
        } catch {
          result = .failure(error)
        }
        state.withLock(of: self) { state in
          state.renewal = nil
          if case .success(let token) = result { state.token = token }
        }
        renewal.open(result)
      }
    }
    let waiter = Renewal()
    let relay = Task { waiter.open(await renewal.value) }
    defer { relay.cancel() }
    return try await withTaskCancellationHandler {
      try await waiter.value.get()
    } onCancel: {
      waiter.open(.failure(CancellationError()))
    }
  }
}
#endif
