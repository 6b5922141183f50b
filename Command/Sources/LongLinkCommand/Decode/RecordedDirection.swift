// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkScenarios

/// The frames of one direction of a recorded connection.
struct RecordedDirection {
  let label: String
  let sender: Role
  private(set) var items: [DecodedItem]

  /// Both directions of each connection that has frames, in the order of the connections.
  static func all(in recording: RecordingFile) -> [RecordedDirection] {
    let packets = Dictionary(
      grouping: recording.packets.filter { $0.connection != 0 }, by: \.place)
    return packets.sorted { $0.key < $1.key }.flatMap { streams(of: $0.value, $0.key) }
  }

  private static func streams(
    of packets: [RecordingFile.Packet], _ place: RecordingFile.Place
  ) -> [RecordedDirection] {
    let events = packets.compactMap { packet in
      if case .event(let event) = packet.content { event } else { nil }
    }
    let received = frames(.received, of: packets)
    let sent = frames(.sent, of: packets)
    let role = role(of: events.first) ?? guess(received, sent)
    let peer = events.first.flatMap(peer).map { " from \($0)" } ?? ""
    var input = RecordedDirection(
      label: "\(place), received\(peer)", sender: role.peer,
      items: NativeStream.items(of: received, from: role.peer))
    let output = RecordedDirection(
      label: "\(place), sent", sender: role, items: NativeStream.items(of: sent, from: role))
    if let ending = events.lazy.compactMap(\.ending).first,
      case .violation(let violation) = ending.reason
    {
      input.add(violation.rule, after: events.first?.event == .began ? ending.frames : nil)
    }
    return [input, output].filter { !$0.items.isEmpty }
  }

  private static func frames(
    _ direction: RecordingWriter.Direction, of packets: [RecordingFile.Packet]
  ) -> [(kept: [UInt8], size: Int)] {
    packets.compactMap { packet in
      guard case .frame(direction, let kept, let size) = packet.content else { return nil }
      return (kept, size)
    }
  }

  /// This side's role, which the beginning of the connection has.
  private static func role(of event: RecordingFile.Event?) -> Role? {
    guard let event, event.event == .began else { return nil }
    return event.numbers[1] & 1 == 1 ? .server : .client
  }

  private static func peer(_ event: RecordingFile.Event) -> PeerText? {
    guard event.event == .began, let line = event.bytes.split(separator: 10).first else {
      return nil
    }
    return PeerText(utf8: line)
  }

  /// The role in which more frames break no rule.
  private static func guess(
    _ received: [(kept: [UInt8], size: Int)], _ sent: [(kept: [UInt8], size: Int)]
  ) -> Role {
    func damages(_ role: Role) -> Int {
      (NativeStream.items(of: received, from: role.peer)
        + NativeStream.items(of: sent, from: role)).count(where: \.isDamage)
    }
    return damages(.server) <= damages(.client) ? .server : .client
  }

  /// Adds the verdict of the recorded side that the peer broke a rule. With a wrong checksum, it is
  /// the frame behind those that were accepted; nil if their number is not known.
  private mutating func add(_ rule: Violation.Rule, after frames: Int?) {
    if rule == .checksumMismatch, let frames, items.indices.contains(frames) {
      let item = items[frames]
      guard case .frame(let frame) = item.content else { return }
      items[frames] = DecodedItem(
        offset: item.offset, length: item.length, content: .damage("\(rule)", frame))
    } else if !items.contains(where: \.isDamage) {
      let end = items.last.map { $0.offset + $0.length } ?? 0
      items.append(DecodedItem(offset: end, length: 0, content: .damage("\(rule)", nil)))
    }
  }
}
