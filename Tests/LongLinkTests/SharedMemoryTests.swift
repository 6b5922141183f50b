// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDemoMessages
import LongLinkProtobufC
import Testing

/// What the thread sanitizer has to see: nothing fails here without it.
@Suite struct SharedMemoryTests {
  @Test func `empty bodies are made by many threads at once`() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          for _ in 0..<20_000 {
            let made = [
              [UInt8](decoding: RawSpan()), try EmptyBody().encodedBytes(),
              try ProtobufEmpty().encodedBytes(),
            ]
            #expect(made.allSatisfy { $0.isEmpty })
          }
        }
      }
      try await group.waitForAll()
    }
  }
}
