// SPDX-License-Identifier: Apache-2.0

#if Operations
import LongLinkCore
import LongLinkScenarios
import Testing

/// Recordings of whole runs: another core that is told the same decides the same.
@Suite("Replays")
struct ReplayTests {
  @Test(
    "what the loops of random worlds have recorded replays", arguments: [1, 2, 3, 4] as [UInt64])
  func replaysScenarios(_ seed: UInt64) async throws {
    let report = try await Scenario(seed: seed).run(recording: true)
    #expect(!report.recordings.isEmpty)
    var replayed = 0
    for snapshot in report.recordings {
      let file = RecordingWriter.file([snapshot], names: [1: "Echo"])
      let recording = try RecordingFile(file)
      #expect(recording.damage == nil)
      for (place, outcome) in Replayer.replay(recording) {
        switch outcome {
        case .replayed(let steps): replayed += steps
        case .timelineOnly(let why):
          Issue.record("connection \(place.connection) has a timeline only: \(why)")
        case .differs(_, let connection, let text):
          Issue.record("connection \(connection) differs: \(text)")
        }
      }
    }
    #expect(replayed > 1_000)
  }
}
#endif
