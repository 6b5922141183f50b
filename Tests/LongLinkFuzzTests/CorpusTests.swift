// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkFuzz
import LongLinkScenarios
import Testing

/// What fuzzers begin with, and what they have found, without any fuzzer.
@Suite struct CorpusTests {
  private static let project = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
  private static let vectors = project.appending(path: "Protocols/Vectors")
  private static let found = project.appending(path: "Tests/LongLinkFuzz/Found")

  @Test(arguments: FuzzTarget.allCases)
  func `an empty input is accepted`(target: FuzzTarget) throws {
    try target.run([])
  }

  @Test(arguments: FuzzTarget.allCases)
  func `every first input is survived, whole and cut off`(target: FuzzTarget) throws {
    let inputs = try FuzzCorpus.inputs(for: target, vectors: CorpusTests.vectors)
    #expect(inputs.count > 3)
    for input in inputs {
      try target.run(input)
      for length in stride(from: 0, to: input.count, by: max(1, input.count / 8)) {
        try target.run(Array(input[..<length]))
      }
    }
  }

  @Test(arguments: FuzzTarget.allCases)
  func `every first input is survived with any one byte changed`(target: FuzzTarget) throws {
    for input in try FuzzCorpus.inputs(for: target, vectors: CorpusTests.vectors) {
      for place in stride(from: 0, to: input.count, by: max(1, input.count / 24)) {
        var changed = input
        changed[place] ^= UInt8(1 << (place % 8))
        try target.run(changed)
      }
    }
  }

  @Test func `what two cores record of each other replays, with bodies and without`() throws {
    for file in try FuzzCorpus.inputs(for: .recording, vectors: CorpusTests.vectors) {
      guard case .replayed(let steps) = Replayer.sum(Replayer.replay(try RecordingFile(file)))
      else {
        Issue.record("a recording differs, or has a timeline only")
        continue
      }
      #expect(steps > 8)
    }
  }

  @Test func `inputs that were once found to fail are survived`() throws {
    for target in FuzzTarget.allCases {
      let folder = CorpusTests.found.appending(path: target.rawValue)
      guard
        let files = try? FileManager.default.contentsOfDirectory(
          at: folder, includingPropertiesForKeys: nil)
      else { continue }
      for file in files.sorted(by: { $0.path < $1.path }) {
        try target.run(Array(Data(contentsOf: file)))
      }
    }
  }
}
