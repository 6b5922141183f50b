// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

extension Metadata {
  /// Whether the metadata holds an idempotency key or entries, which only the peer can use.
  var isMoreThanPriority: Bool { !idempotencyKey.isEmpty || !entries.isEmpty }

  /// Makes the metadata of a request with options.
  init(_ options: RequestOptions) {
    self.init(priority: options.priority ?? 0, idempotencyKey: options.idempotencyKey)
    setEntries(options.metadata)
  }

  /// Sets the entries, in the order of their keys.
  mutating func setEntries(_ entries: [String: String]) {
    self.entries = entries.sorted { $0.key < $1.key }.map { Entry(key: $0.key, value: $0.value) }
  }
}

extension RequestOptions {
  /// Whether the request needs metadata besides the remaining time, and what it states to run once.
  var hasMetadata: Bool {
    (priority ?? 0) != 0 || !metadata.isEmpty || !runsOnce && !idempotencyKey.isEmpty
  }

  /// Whether a request needs more than what all have.
  var needsExtras: Bool { (priority ?? 0) != 0 || hasMetadata || ticket != nil }

  /// Whether a cancel is sent to the peer when the caller stops waiting.
  var notifiesCancel: Bool { cancelsAtPeer != false }
}
