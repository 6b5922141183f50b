// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import Synchronization

extension Journal {
  /// Waits until `find` returns a value for the record, and returns that value. The record may have
  /// changed by the time the caller continues.
  func first<T: Sendable>(
    for call: Call, _ find: @escaping @Sendable (PeerRecord) -> T?
  ) async throws -> T {
    let found = Box(Mutex<T?>(nil))
    try await wait(for: call) { record in
      guard let value = find(record) else { return false }
      found.value.withLock { $0 = value }
      return true
    }
    guard let value = found.value.withLock({ $0 }) else { throw CancellationError() }
    return value
  }

  /// Waits until `find` returns a value for the record.
  ///
  /// Throws if the connection ends before that.
  func message<T: Sendable>(
    on connection: Int, for call: Call,
    _ find: @escaping @Sendable (PeerRecord) -> T?
  ) async throws -> T {
    let found = try await first(for: call) { record -> Result<T, ConnectionEndedError>? in
      if let value = find(record) { return .success(value) }
      return record.ending(of: connection).map { .failure(ConnectionEndedError(ending: $0)) }
    }
    return try found.get()
  }
}

extension PeerRecord {
  func ending(of connection: Int) -> ConnectionEnding? {
    endings.first { $0.connection == connection }
  }
}
