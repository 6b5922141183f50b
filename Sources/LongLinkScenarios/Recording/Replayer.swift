// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

/// Repeats what a recording has of each connection, in a core of its own, which has to decide the
/// same.
package enum Replayer {
  /// What came of it.
  package enum Outcome: Equatable, Sendable {
    /// All events were repeated with the same decisions and the same bytes.
    case replayed(steps: Int)
    /// The connection cannot be repeated, for this reason.
    case timelineOnly(String)
    /// The first decision that differs: its time in nanoseconds since 1970, the connection, and
    /// what differs.
    case differs(at: Int64, connection: UInt32, String)
  }

  /// Repeats each connection of the recording, in the order of their numbers.
  package static func replay(
    _ recording: RecordingFile
  ) -> [(place: RecordingFile.Place, outcome: Outcome)] {
    let packets = Dictionary(
      grouping: recording.packets.filter { $0.connection != 0 }, by: \.place)
    return packets.sorted { $0.key < $1.key }.map { ($0.key, replay($0.value)) }
  }

  /// The outcome of the whole recording: the first difference, or else the sum of the steps. If
  /// nothing can be repeated, it is the first reason.
  package static func sum(
    _ outcomes: [(place: RecordingFile.Place, outcome: Outcome)]
  ) -> Outcome {
    var (steps, isReplayed) = (0, false)
    var (first, reason): (Outcome?, String?) = (nil, nil)
    var firstTime = Int64.max
    for (_, outcome) in outcomes {
      switch outcome {
      case .replayed(let count):
        steps += count
        isReplayed = true
      case .timelineOnly(let why): reason = reason ?? why
      case .differs(let time, _, _):
        if time < firstTime { (firstTime, first) = (time, outcome) }
      }
    }
    if let first { return first }
    return isReplayed ? .replayed(steps: steps) : .timelineOnly(reason ?? "it has no connection")
  }

  private static func replay(_ packets: [RecordingFile.Packet]) -> Outcome {
    let events = packets.compactMap { packet -> (RecordingFile.Packet, RecordingFile.Event)? in
      if case .event(let event) = packet.content { (packet, event) } else { nil }
    }
    guard let (first, beginning) = events.first, beginning.event == .began else {
      return .timelineOnly("it does not reach back to the connection's beginning")
    }
    let texts = String(decoding: beginning.bytes, as: UTF8.self)
      .split(separator: "\n", maxSplits: 2, omittingEmptySubsequences: false)
    guard texts.count == 3,
      instants.contains(first.instant.nanoseconds),
      let settings = RecordedSettings(
        beginning.numbers, name: String(texts[2]), at: first.instant)
    else { return .timelineOnly("the connection's settings cannot be read") }
    if settings.hasDialect { return .timelineOnly("the connection has a dialect") }
    guard frames(.received, in: packets).allSatisfy(hasWholeMetadata) else {
      return .timelineOnly("metadata goes on in a second frame")
    }
    let read = events.reduce(0 as UInt64) { sum, event in
      event.1.event == .received ? sum &+ event.1.numbers[0] : sum
    }
    let connection = ReplayedConnection(
      settings,
      input: RecordedStream(
        frames(.received, in: packets), atMost: Int(clamping: read), wrong: damagedFrame(events)),
      output: RecordedStream(frames(.sent, in: packets)))
    return run(connection, events.dropFirst())
  }

  /// The instants that a clock can have, in nanoseconds: 36 years before and after its origin. So
  /// sums of them cannot overflow.
  private static let instants = -(1 << 60)...(1 << 60) as ClosedRange<Int64>

  private static func run(
    _ connection: ReplayedConnection,
    _ events: ArraySlice<(RecordingFile.Packet, RecordingFile.Event)>
  ) -> Outcome {
    var steps = 0
    for (packet, event) in events where !connection.isClosed {
      guard let known = event.event else {
        return .timelineOnly("it has an event of a later version, \(event.code)")
      }
      guard instants.contains(packet.instant.nanoseconds) else {
        return .timelineOnly("it lacks an instant that is possible")
      }
      do throws(ReplayedConnection.Failure) {
        try connection.step(event, known, at: packet.instant)
      } catch {
        switch error {
        case .lacks(let text): return .timelineOnly("it lacks \(text)")
        case .differs(let text):
          return .differs(
            at: packet.time, connection: packet.connection, "\(known.name): \(text)")
        }
      }
      steps += 1
    }
    return .replayed(steps: steps)
  }

  private static func frames(
    _ direction: RecordingWriter.Direction, in packets: [RecordingFile.Packet]
  ) -> [(kept: [UInt8], size: Int)] {
    packets.compactMap { packet in
      guard case .frame(direction, let kept, let size) = packet.content else { return nil }
      return (kept, size)
    }
  }

  /// Whether the metadata of a message, if any, ends in its first frame.
  private static func hasWholeMetadata(_ frame: (kept: [UInt8], size: Int)) -> Bool {
    let kept = frame.kept
    guard kept.count >= 18, kept[0] & 0xC0 == 0xC0 else { return true }
    return 18 + (Int(kept[16]) << 8 | Int(kept[17])) <= frame.size
  }

  /// The index of the frame whose checksum was wrong: the one behind those that were accepted.
  private static func damagedFrame(
    _ events: [(RecordingFile.Packet, RecordingFile.Event)]
  ) -> Int? {
    for (_, event) in events {
      guard let (reason, frames) = event.ending, case .violation(let violation) = reason,
        violation.rule == .checksumMismatch
      else { continue }
      return frames
    }
    return nil
  }
}
