// SPDX-License-Identifier: Apache-2.0

#if Operations
import LongLinkCore
import LongLinkScenarios
import LongLinkTesting
import Testing

/// Recordings come from elsewhere: whatever is in the file, reading and replaying it ends without a
/// trap, and without more memory than the reader allows.
@Suite("Damaged recordings")
struct RecordingDamageTests {
  private static let mostBytes = 40_000

  @Test("no change of a recording traps", arguments: [1, 2, 3] as [UInt64])
  func survivesChanges(_ seed: UInt64) async throws {
    let report = try await Scenario(seed: seed).run(recording: true)
    var files: [[UInt8]] = []
    for snapshot in report.recordings {
      let whole = try RecordingFile(RecordingWriter.file([snapshot], names: [:]))
      for connection in Set(whole.packets.map(\.connection)).sorted() where connection > 0 {
        let file = RecordingWriter.file([snapshot], names: [1: "Echo"], links: [connection])
        if file.count <= Self.mostBytes { files.append(file) }
      }
    }
    try #require(!files.isEmpty)
    var generator = SeededGenerator(seed: seed)
    var kinds: Set<String> = []
    for round in 0..<1_000 {
      var file = files[round % files.count]
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        Self.change(&file, using: &generator)
      }
      kinds.insert(Self.outcome(of: file))
    }
    // Changes are found, and most files can still be read.
    #expect(kinds.isSuperset(of: ["damaged", "replayed", "timeline", "differs"]))
  }

  /// What came of a file: the name of its kind.
  private static func outcome(of file: [UInt8]) -> String {
    guard let recording = try? RecordingFile(file) else { return "none" }
    let outcomes = Replayer.replay(recording)
    _ = SimulationTimeline(recording, outcomes).svg()
    for packet in recording.packets { _ = RecordedStep(packet, names: recording.names).text }
    if recording.damage != nil { return "damaged" }
    return switch Replayer.sum(outcomes) {
    case .replayed: "replayed"
    case .timelineOnly: "timeline"
    case .differs: "differs"
    }
  }

  // MARK: - Changes

  private static let extremes: [UInt64] = [
    0, 1, .max, .max - 1, 1 << 63, 1 << 62, UInt64(Int64.max), 1 << 40, 1 << 40 - 1, 1 << 32,
    1 << 31, 1 << 26, 1 << 24, 65_536, 255,
  ]

  private static func change(
    _ file: inout [UInt8], using generator: inout SeededGenerator
  ) {
    switch Int.random(in: 0..<20, using: &generator) {
    case 0: file.removeLast(Int.random(in: 0...file.count, using: &generator))
    case 1, 2: flip(&file, in: 0..<file.count, using: &generator)
    default: changePacket(&file, using: &generator)
    }
  }

  private static func flip(
    _ file: inout [UInt8], in range: Range<Int>, using generator: inout SeededGenerator
  ) {
    guard let place = range.randomElement(using: &generator) else { return }
    file[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
  }

  /// Changes a packet and leaves the blocks around it as they are.
  private static func changePacket(
    _ file: inout [UInt8], using generator: inout SeededGenerator
  ) {
    let packets = packets(in: file)
    guard let packet = packets.randomElement(using: &generator) else { return }
    let content = packet.content
    switch Int.random(in: 0..<8, using: &generator) {
    case 0: flip(&file, in: content, using: &generator)
    case 1:
      // The sizes of a captured packet.
      store(extremes.randomElement(using: &generator) ?? 0, 4, at: packet.block.lowerBound + 24)
    case 2:
      let other = packets.randomElement(using: &generator)?.block ?? packet.block
      file.replaceSubrange(packet.block, with: Array(file[other]))
    case 3: file.removeSubrange(packet.block)
    case 4: store(extremes.randomElement(using: &generator) ?? 0, 8, at: content.lowerBound + 8)
    case 5: flip(&file, in: content.dropFirst(16).prefix(2), using: &generator)
    default:
      let numbers = (content.count - 20) / 8
      guard packet.isEvent, numbers > 0 else { return }
      let index = Int.random(in: 0..<numbers, using: &generator)
      let place = content.lowerBound + 20 + 8 * index
      let old = file[place..<place + 8].reduce(0) { $0 << 8 | UInt64($1) }
      let new =
        Bool.random(using: &generator)
        ? extremes.randomElement(using: &generator) ?? 0
        : old ^ 1 << UInt64.random(in: 0..<64, using: &generator)
      store(new, 8, at: place)
    }
    func store(_ number: UInt64, _ size: Int, at place: Int) {
      guard place + size <= file.count else { return }
      for index in 0..<size {
        file[place + index] = UInt8(truncatingIfNeeded: number >> UInt64(8 * (size - 1 - index)))
      }
    }
  }

  private struct Packet {
    let block: Range<Int>
    let content: Range<Int>
    let isEvent: Bool
  }

  /// The places of the packets in a file, as far as its blocks are whole.
  private static func packets(in file: [UInt8]) -> [Packet] {
    func number(_ place: Int) -> Int {
      file[place..<place + 4].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    var packets: [Packet] = []
    var place = 0
    while place + 12 <= file.count {
      let (type, size) = (number(place), number(place + 4))
      guard size >= 12, size.isMultiple(of: 4), place + size <= file.count else { break }
      if type == 6, size >= 32 {
        let end = min(place + 28 + number(place + 20), place + size - 4)
        if end >= place + 28 + 20 {
          packets.append(
            Packet(
              block: place..<place + size, content: place + 28..<end,
              isEvent: number(place + 8) == 1))
        }
      }
      place += size
    }
    return packets
  }
}
#endif
