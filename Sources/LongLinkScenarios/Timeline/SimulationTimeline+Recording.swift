// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension SimulationTimeline {
  /// The most connections that have a lane each.
  private static let mostLanes = 8

  /// The timeline of a recording, from its first packet on: this side is the first lane, and each
  /// connection another; if there are very many, all of them share one. Events that only count are
  /// left out. `outcomes` are those of the replay: a difference becomes a mark.
  package init(
    _ recording: RecordingFile,
    _ outcomes: [(place: RecordingFile.Place, outcome: Replayer.Outcome)]
  ) {
    let places = Set(recording.packets.lazy.filter { $0.connection != 0 }.map(\.place)).sorted()
    let isShared = places.count > Self.mostLanes
    let start = recording.packets.first?.time ?? 0
    var (items, last) = ([Item](), LinkInstant(nanoseconds: 0))
    for packet in recording.packets where packet.connection != 0 {
      let step = RecordedStep(packet, names: recording.names)
      if step.isBookkeeping { continue }
      // Times of a file that was changed may fall.
      last = max(last, Self.time(packet.time, since: start))
      let lane = isShared ? 1 : (places.firstIndex(of: packet.place) ?? 0) + 1
      items.append(Item(time: last, event: Self.event(of: packet, step, lane: lane)))
    }
    for case (_, .differs(let time, let connection, let text)) in outcomes {
      let item = Item(
        time: Self.time(time, since: start),
        event: .mark(
          lane: 0, kind: .fault, text: "connection \(connection): the replay differs: \(text)"))
      let place = items.firstIndex { $0.time > item.time } ?? items.count
      items.insert(item, at: place)
    }
    let names = isShared ? ["\(places.count) connections"] : places.map(\.description)
    self.init(lanes: ["this side"] + names, items: items)
  }

  private static func time(_ time: Int64, since start: Int64) -> LinkInstant {
    let (elapsed, overflow) = time.subtractingReportingOverflow(start)
    return LinkInstant(nanoseconds: overflow ? 0 : max(0, elapsed))
  }

  private static func event(
    of packet: RecordingFile.Packet, _ step: RecordedStep, lane: Int
  ) -> Event {
    guard case .event(let event) = packet.content else {
      let (from, to) = step.direction == .sent ? (0, lane) : (lane, 0)
      let arrival = LinkInstant(nanoseconds: 0)
      return .frame(
        from: from, to: to, link: Int(packet.connection), label: step.text, arrival: arrival)
    }
    let kind: MarkKind =
      switch event.event {
      case .began, .connected, .ended, .failed, .close: .socket
      default: if case .violation = event.ending?.reason { .fault } else { .state }
      }
    return .mark(lane: 0, kind: kind, text: "connection \(packet.connection): \(step.text)")
  }
}

extension RecordingFile.Place: CustomStringConvertible {
  package var description: String {
    loop == 0 ? "connection \(connection)" : "connection \(connection) on loop \(loop)"
  }
}
