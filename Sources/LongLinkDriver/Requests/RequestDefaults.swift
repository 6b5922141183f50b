// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
@_spi(Loop) package import LongLinkTransport

/// What a client or server does where a request says nothing.
package struct RequestDefaults: Sendable {
  /// In nanoseconds.
  package var timeout: Int64
  package var offline: OfflinePolicy

  package init(timeout: Int64, offline: OfflinePolicy) {
    self.timeout = timeout
    self.offline = offline
  }
}

/// Where a request stands.
public enum RequestState: String, Hashable, Sendable {
  /// It waits for a connection, for room on it, or for its turn to be sent again.
  case created
  /// It is being written.
  case sending
  /// It was written; the answer is awaited.
  case waiting
  /// It has ended.
  case completed
}

extension Metadata {
  /// Whether it holds what only the peer can make use of.
  var isMoreThanPriority: Bool { !idempotencyKey.isEmpty || !entries.isEmpty }

  /// What a caller's options tell the peer; the key is made up where they want one.
  init(_ options: RequestOptions, on loop: EventLoop) {
    let wantsKey = options.idempotencyKey.isEmpty && options.retry == .idempotentByKey
    self.init(
      priority: options.priority ?? 0,
      idempotencyKey: wantsKey ? loop.randomKey() : options.idempotencyKey,
      entries: options.metadata.sorted { $0.key < $1.key }
        .map { Entry(key: $0.key, value: $0.value) })
  }
}

extension RequestOptions {
  /// Whether anything but the time that remains has to be told to the peer.
  var hasMetadata: Bool {
    (priority ?? 0) != 0 || !idempotencyKey.isEmpty || !metadata.isEmpty
      || retry == .idempotentByKey
  }

  /// Whether the peer is told when the caller stops waiting.
  var notifiesCancel: Bool { cancellation != .local }
}

extension EventLoop {
  /// An idempotency key that no other request has.
  package func randomKey() -> [UInt8] {
    [driver.nextRandom(), driver.nextRandom()].flatMap { word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
    }
  }
}
