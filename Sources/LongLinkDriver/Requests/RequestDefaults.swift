// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
@_spi(Loop) package import LongLinkTransport

/// The defaults of a client or server for options that a request leaves nil.
package struct RequestDefaults: Sendable {
  /// In nanoseconds.
  package var timeout: Int64
  package var offline: OfflinePolicy

  package init(timeout: Int64, offline: OfflinePolicy) {
    self.timeout = timeout
    self.offline = offline
  }
}

/// The state of a request.
public enum RequestState: String, Hashable, Sendable {
  /// The request waits for a connection, for room on it, or for a retry.
  case created
  /// The request is being written.
  case sending
  /// The request was written, and the response has not come.
  case waiting
  /// The request has ended.
  case completed
}

extension Metadata {
  /// Whether it holds an idempotency key or entries, which only the peer can use.
  var isMoreThanPriority: Bool { !idempotencyKey.isEmpty || !entries.isEmpty }

  /// Makes the metadata of a request with options; makes a random key if they ask for one.
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
  /// Whether the request needs metadata besides the remaining time.
  var hasMetadata: Bool {
    (priority ?? 0) != 0 || !idempotencyKey.isEmpty || !metadata.isEmpty
      || retry == .idempotentByKey
  }

  /// Whether a cancel is sent to the peer when the caller stops waiting.
  var notifiesCancel: Bool { cancellation != .local }
}

extension EventLoop {
  /// Makes an idempotency key of 16 random bytes.
  package func randomKey() -> [UInt8] {
    [driver.nextRandom(), driver.nextRandom()].flatMap { word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
    }
  }
}
