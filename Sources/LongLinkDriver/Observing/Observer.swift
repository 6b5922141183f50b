// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// Watches the exchanges and links of a client or a server: for metrics, traces, logs and
/// recordings.
///
/// Records exist only if there is an observer. The functions about links and exchanges are called
/// on the loop, once for each event, and must not block it; `begins` is called where the request is
/// made, and `withScope` where the handler runs. Each has a default that does nothing.
package protocol Observer: Sendable {
  /// This side makes a request. Called in the caller's task, or on its thread.
  ///
  /// The peer's handler gets the entries that the observer adds to `metadata`, or changes. Changes
  /// are dropped if a dialect has no place for them, or if the metadata would be too large.
  func begins(_ exchange: ExchangeRecord, metadata: inout [String: String])
  /// A request of the peer has arrived, with this metadata.
  func arrived(_ exchange: ExchangeRecord, metadata: [String: String])
  /// A link has taken a request of this side, once for each attempt; or a handler is about to get a
  /// request of the peer.
  func handedOver(_ exchange: ExchangeRecord)
  /// The exchange has ended. It is the last call about it.
  func ended(_ exchange: ExchangeRecord)
  /// Runs the synchronous handler of a request of the peer, for example with task-local values.
  func withScope(
    of exchange: ExchangeRecord, _ handler: () throws -> AnyBody
  ) throws -> AnyBody
  /// Runs the asynchronous handler of a request of the peer.
  func withScope(
    of exchange: ExchangeRecord, _ handler: () async throws -> AnyBody
  ) async throws -> AnyBody

  /// A link begins: a connection is made or accepted, or a short link is.
  func began(_ link: LinkRecord)
  /// The handshake of a link is complete.
  func opened(_ link: LinkRecord)
  /// An item of this side has to wait, because the peer has granted no credit for it.
  func stalled(_ link: LinkRecord)
  /// A link begins to end, for this reason. A goaway that it sends is written by the end of the
  /// loop's next turn, unless the peer takes nothing.
  func abandoned(_ link: LinkRecord, for reason: CloseReason)
  /// A link has ended. It is the last call about it.
  func ended(_ link: LinkRecord)
}

extension Observer {
  package func begins(_ exchange: ExchangeRecord, metadata: inout [String: String]) {}
  package func arrived(_ exchange: ExchangeRecord, metadata: [String: String]) {}
  package func handedOver(_ exchange: ExchangeRecord) {}
  package func ended(_ exchange: ExchangeRecord) {}
  package func withScope(
    of exchange: ExchangeRecord, _ handler: () throws -> AnyBody
  ) throws -> AnyBody { try handler() }
  package func withScope(
    of exchange: ExchangeRecord, _ handler: () async throws -> AnyBody
  ) async throws -> AnyBody { try await handler() }
  package func began(_ link: LinkRecord) {}
  package func opened(_ link: LinkRecord) {}
  package func stalled(_ link: LinkRecord) {}
  package func abandoned(_ link: LinkRecord, for reason: CloseReason) {}
  package func ended(_ link: LinkRecord) {}
}

/// The observers of a client or a server, and the interceptors of a client: at least one of them.
@usableFromInline package final class Observers: Sendable {
  package let all: [any Observer]
  let interceptors: [RequestInterceptor]

  /// Returns nil if there are none.
  package init?(_ all: [any Observer], interceptors: [RequestInterceptor] = []) {
    guard !all.isEmpty || !interceptors.isEmpty else { return nil }
    self.all = all
    self.interceptors = interceptors
  }

  func withScope(
    of exchange: ExchangeRecord, _ handler: () throws -> AnyBody
  ) throws -> AnyBody {
    try withScope(of: exchange, from: 0, handler)
  }

  private func withScope(
    of exchange: ExchangeRecord, from index: Int, _ handler: () throws -> AnyBody
  ) throws -> AnyBody {
    guard index < all.count else { return try handler() }
    return try all[index].withScope(of: exchange) {
      try withScope(of: exchange, from: index + 1, handler)
    }
  }

  func withScope(
    of exchange: ExchangeRecord, _ handler: () async throws -> AnyBody
  ) async throws -> AnyBody {
    try await withScope(of: exchange, from: 0, handler)
  }

  private func withScope(
    of exchange: ExchangeRecord, from index: Int, _ handler: () async throws -> AnyBody
  ) async throws -> AnyBody {
    guard index < all.count else { return try await handler() }
    return try await all[index].withScope(of: exchange) {
      try await withScope(of: exchange, from: index + 1, handler)
    }
  }
}
