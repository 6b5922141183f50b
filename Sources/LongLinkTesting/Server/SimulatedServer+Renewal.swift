// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
internal import Synchronization

// How a server answers the renewals of its clients' credentials.
extension SimulatedServer {
  /// Performs the action that the closure returns for each renewal of a client's credential.
  ///
  /// The body of the closure's argument is the new credential. The closure runs on the loop and
  /// must not block. A later script for renewals replaces it. From now on, welcomes agree to the
  /// feature ``WireFeatures/renewal``, if the handshake's features and the client's hello contain
  /// it.
  ///
  /// Without a script, the server accepts each credential for the `credentialExpires` of its
  /// ``handshake``. If that has none, a renewal gets no answer.
  public func onRenewal(_ make: @escaping @Sendable (ReceivedMessage) -> ServerAction) {
    script.value.withLock { $0.renewal = .made(make) }
  }

  /// Performs an action for each renewal of a client's credential, after `delay` if there is one.
  /// Use ``ServerAction/renewed(_:credentialExpires:reason:)``, or `never` to stay silent.
  public func onRenewal(_ action: ServerAction, after delay: Duration? = nil) {
    onRenewal([delay.map { .delay($0, then: action) } ?? action])
  }

  /// Performs the first action for the first renewal of any client's credential, the second for the
  /// second, and so on. The last action repeats. An empty array traps.
  public func onRenewal(_ actions: [ServerAction]) {
    precondition(!actions.isEmpty, "a list of actions must not be empty")
    script.value.withLock { $0.renewal = .listed(actions, taken: 0) }
  }

  /// The renewals received so far, on all connections, in the order of arrival. Their bodies are
  /// the new credentials.
  public var renewals: [ReceivedMessage] { record.renewals }

  /// Waits until `count` renewals have arrived since the start, and returns the last of these. A
  /// `count` below 1 traps.
  ///
  /// Throws `CancellationError` if the task is cancelled or the server stops before that.
  @discardableResult
  public func waitForRenewal(
    count: Int = 1, fileID: String = #fileID, line: Int = #line
  ) async throws -> ReceivedMessage {
    precondition(count > 0, "count has to be at least 1")
    try await journal.wait(for: call("renewal \(count)", fileID, line)) {
      $0.renewals.count >= count
    }
    return renewals[count - 1]
  }
}

extension ServerAction {
  /// Answers the renewal of a client's credential: accepts it for a time (nil: without an end), or
  /// refuses it with another code than 200 and a reason.
  ///
  /// Use it with `onRenewal`. As the action for a request, it sends an answer that the client does
  /// not wait for, which is a violation.
  public static func renewed(
    _ code: ResponseCode = .ok, credentialExpires: Duration? = nil, reason: String = ""
  ) -> ServerAction {
    frame { _ in .renewed(code, credentialExpires: credentialExpires, reason: reason) }
  }
}
