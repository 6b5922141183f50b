// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCommandSupport
import LongLinkCore
import LongLinkScenarios

/// Prints the frames and events of a recording, as text or as JSON, many lines at once.
struct ReplayPrinter {
  private let recording: RecordingFile
  private let asJSON: Bool
  private let hasLoops: Bool
  private let width: Int
  private let encoder = JSONEncoder()
  private var lines: [UInt8] = []

  init(_ recording: RecordingFile, asJSON: Bool) {
    self.recording = recording
    self.asJSON = asJSON
    hasLoops = Set(recording.packets.map(\.loop)).count > 1
    let longest = recording.packets.map(\.connection).max() ?? 0
    width = "\(longest)".count + (hasLoops ? 4 : 0)
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
  }

  mutating func printAll() throws {
    let start = recording.packets.first?.time ?? 0
    for packet in recording.packets {
      let step = RecordedStep(packet, names: recording.names)
      if asJSON {
        try add(Record(packet, step))
      } else {
        add(line(packet, step, since: start))
      }
      if lines.count >= 65_536 { try flush() }
    }
    try flush()
  }

  mutating func print(_ result: ReplayResult) throws {
    if asJSON {
      try add(ResultRecord(result))
    } else {
      for line in result.others { add(line) }
      add(result.text)
    }
    try flush()
  }

  private mutating func add(_ line: String) {
    lines += Array(line.utf8) + [UInt8(ascii: "\n")]
  }

  private mutating func add(_ record: some Encodable) throws {
    lines += try encoder.encode(record) + [UInt8(ascii: "\n")]
  }

  private mutating func flush() throws {
    try Output.write(lines)
    lines.removeAll(keepingCapacity: true)
  }

  // MARK: - Text

  private func line(
    _ packet: RecordingFile.Packet, _ step: RecordedStep, since start: Int64
  ) -> String {
    let place = "\(packet.connection)" + (hasLoops ? "@\(packet.loop)" : "")
    let direction = step.isFrame ? step.direction.word : "-"
    let seconds = ReplayPrinter.seconds(packet.time, since: start)
    let gap = String(repeating: " ", count: 4 - direction.count)
    return "\(seconds.padded(to: 11))  \(place.padded(to: width))  \(direction)\(gap)\(step.text)"
  }

  /// The seconds between two times in nanoseconds, with six decimal places.
  static func seconds(_ time: Int64, since start: Int64) -> String {
    let (elapsed, overflow) = time.subtractingReportingOverflow(start)
    let micros = (overflow ? 0 : elapsed) / 1_000
    let (whole, part) = micros.magnitude.quotientAndRemainder(dividingBy: 1_000_000)
    let digits = String(part)
    return (micros < 0 ? "-" : "") + "\(whole)."
      + String(repeating: "0", count: 6 - digits.count) + digits
  }

  // MARK: - JSON

  private struct Key: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(_ name: String) { stringValue = name }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  /// A frame or event.
  private struct Record: Encodable {
    let packet: RecordingFile.Packet
    let step: RecordedStep

    init(_ packet: RecordingFile.Packet, _ step: RecordedStep) {
      self.packet = packet
      self.step = step
    }

    func encode(to encoder: any Encoder) throws {
      var record = encoder.container(keyedBy: Key.self)
      try record.encode(packet.time, forKey: Key("at"))
      try record.encode(packet.connection, forKey: Key("connection"))
      try record.encode(packet.loop, forKey: Key("loop"))
      try record.encode(step.isFrame ? "frame" : "event", forKey: Key("kind"))
      try record.encode(step.name, forKey: Key("name"))
      try record.encode(step.direction.word, forKey: Key("direction"))
      for (name, value) in step.values {
        switch value {
        case .number(let number): try record.encode(number, forKey: Key(name))
        case .signed(let number): try record.encode(number, forKey: Key(name))
        case .text(let text): try record.encode(text, forKey: Key(name))
        case .type(let type, let known):
          try record.encode(type, forKey: Key(name))
          if let known { try record.encode(known, forKey: Key("\(name)_name")) }
        }
      }
    }
  }

  /// The last object.
  private struct ResultRecord: Encodable {
    enum CodingKeys: String, CodingKey {
      case result, text, steps, at, connection
      case timelineOnly = "timeline_only"
    }

    let result: ReplayResult

    init(_ result: ReplayResult) { self.result = result }

    func encode(to encoder: any Encoder) throws {
      var record = encoder.container(keyedBy: CodingKeys.self)
      try record.encode(result.kind.rawValue, forKey: .result)
      try record.encodeIfPresent(result.detail, forKey: .text)
      try record.encodeIfPresent(result.steps, forKey: .steps)
      try record.encodeIfPresent(result.at, forKey: .at)
      try record.encodeIfPresent(result.connection, forKey: .connection)
      if !result.others.isEmpty { try record.encode(result.others, forKey: .timelineOnly) }
    }
  }
}

extension RecordingWriter.Direction {
  fileprivate var word: String {
    switch self {
    case .received: "in"
    case .sent: "out"
    case .neither: "neither"
    }
  }
}

extension String {
  /// The text, with blanks before it.
  fileprivate func padded(to width: Int) -> String {
    String(repeating: " ", count: max(0, width - count)) + self
  }
}
