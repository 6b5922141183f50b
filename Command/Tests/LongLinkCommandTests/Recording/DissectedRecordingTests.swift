// SPDX-License-Identifier: Apache-2.0

#if Operations
import LongLinkCore
import LongLinkScenarios
import LongLinkTestSupport
import Testing

@testable import LongLinkCommand

/// What tshark makes of recordings, with the dissector.
@Suite(.serialized, .timeLimit(.minutes(15)), .unless(Tshark.problem))
struct DissectedRecordingTests {
  @Test func `frames and events of a real run are shown`() async throws {
    let tshark = try await Tshark(name: "longlink")
    defer { tshark.remove() }
    let snapshots = try await Scenario(seed: 1).run(recording: true).recordings
    let file = RecordingWriter.file(snapshots, names: [1: "Echo"])
    let recording = try RecordingFile(file)
    let rows = try await tshark.rows(
      in: file, where: "longlink_recording",
      ["connection", "instant", "event", "number"].map { "longlink_recording.\($0)" }
        + ["longlink.kind", "longlink.serial", "longlink.checksum_status"])
    let events = try await tshark.rows(
      in: file, where: "longlink_recording_event", ["longlink_recording.event"])
    var (frames, told) = (0, 0)
    for packet in recording.packets {
      switch packet.content {
      case .frame: frames += 1
      case .event: told += 1
      }
    }
    #expect(frames > 20 && told > 100)
    #expect(rows.count == frames && events.count == told)
    for case (let row, .frame(_, let kept, _)) in zip(
      rows, recording.packets.map(\.content).filter { if case .frame = $0 { true } else { false } })
    {
      let serial = kept[4..<8].reduce(0) { $0 << 8 | UInt32($1) }
      #expect(row[5] == ["\(serial)"] && row[4] != ["damaged"])
    }
    let rules = ["checksumMismatch", "unknownKind", "malformedControl"].map { "longlink.\($0)" }
    let filter = (["_ws.malformed", "_ws.lua"] + rules).joined(separator: " or ")
    let bad = try await tshark.rows(in: file, where: filter, ["frame.number"])
    #expect(bad == [])
  }

  @Test func `bodies that were left out are no damage, and events have names and texts`()
    async throws
  {
    let tshark = try await Tshark(name: "longlink")
    defer { tshark.remove() }
    var recording = MadeRecording()
    recording.begin()
    let body = [0, 3, 8, 0xDC, 0x0B] + [UInt8](repeating: 1, count: 100)
    recording.moved(
      ScriptedConnection.frame(kind: 0x80, tag: 7, serial: 50, body: body), received: true)
    recording.note(.turnAway, [401], Array("no".utf8))
    let frames = try await tshark.rows(
      in: recording.file, where: "longlink",
      [
        "longlink.kind", "longlink.metadata.remaining", "longlink_recording.left_out",
        "longlink_recording.direction", "_ws.expert",
      ])
    #expect(frames == [[["request"], ["1500"], ["100"], ["0"], []]])
    let events = try await tshark.rows(
      in: recording.file, where: "longlink_recording.event > 2",
      ["event", "number", "text"].map { "longlink_recording.\($0)" } + ["_ws.col.Info"])
    #expect(
      events == [
        [["4"], ["121"], [], ["connection 1 received"]],
        [["36"], ["401"], ["no"], ["connection 1 turnAway"]],
      ])
  }
}
#endif
