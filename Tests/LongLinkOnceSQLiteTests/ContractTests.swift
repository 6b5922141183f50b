// SPDX-License-Identifier: Apache-2.0

#if SQLite
import Foundation
import GRDB
import LongLinkOnceSQLite
import LongLinkTesting
import Testing

/// What every store has to do.
@Suite struct ContractTests {
  @Test func `the store keeps what a server relies on`() async throws {
    try await StoreStage.run { stage in
      let check = OnceStoreCheck(
        pass: { stage.pass(Int64($0 / .milliseconds(1)).advanced(by: 1)) },
        restart: { store in
          let name = UUID().uuidString
          guard let store = store as? SQLiteOnceStore else { return store }
          let path = URL(fileURLWithPath: store.database.path)
          try stage.copy(path.lastPathComponent, to: name)
          return try stage.open(name)
        },
        { try stage.open(UUID().uuidString) })
      let findings = try await check.findings()
      #expect(findings == [])
    }
  }
}
#endif
