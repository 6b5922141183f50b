// SPDX-License-Identifier: Apache-2.0

extension Journal {
  /// Waits until `find` returns a value for the record.
  ///
  /// Throws if the connection ends before that.
  func message<T>(
    on connection: Int,
    _ find: @escaping @Sendable (PeerRecord) -> T?
  ) async throws -> T {
    try await wait { record in
      find(record) != nil || record.ending(of: connection) != nil
    }
    let record = record
    guard let found = find(record) else {
      throw ConnectionEndedError(ending: record.ending(of: connection))
    }
    return found
  }
}

extension PeerRecord {
  func ending(of connection: Int) -> ConnectionEnding? {
    endings.first { $0.connection == connection }
  }
}
