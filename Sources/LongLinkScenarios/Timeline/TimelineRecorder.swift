// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTesting
internal import LongLinkTransport

/// Records a timeline. It joins written bytes to frames, and finds when these had arrived
/// completely.
struct TimelineRecorder {
  private struct Flow {
    var machine: Int?
    var reader = FrameReader()
    var written = 0
    /// The number of written bytes that belong to complete frames.
    var framed = 0
    var arrived = 0
    /// The frames on their way: the index of each among the items, and its end as a count of bytes.
    var underWay: [(item: Int, end: Int)] = []
  }

  private var names: [Int: String] = [:]
  private var clients: Set<Int> = []
  private var flows: [EndName: Flow] = [:]
  private var items: [SimulationTimeline.Item] = []

  /// Gives the lane of a machine its name.
  mutating func named(_ machine: Int, _ name: String, isClient: Bool) {
    names[machine] = name
    if isClient { clients.insert(machine) }
  }

  mutating func note(_ text: String, at time: LinkInstant, lane: Int? = nil) {
    add(.mark(lane: lane, kind: .fault, text: text), at: time)
  }

  mutating func state(_ text: String, at time: LinkInstant, lane: Int?) {
    add(.mark(lane: lane, kind: .state, text: text), at: time)
  }

  private mutating func add(
    _ event: SimulationTimeline.Event, at time: LinkInstant, isHeartbeat: Bool = false
  ) {
    items.append(SimulationTimeline.Item(time: time, event: event, isHeartbeat: isHeartbeat))
  }

  mutating func observed(_ entry: Trace.Entry, _ bytes: [UInt8]) {
    let name = entry.end
    if entry.link > 0, let machine = entry.machine {
      flows[name, default: Flow()].machine = machine
    }
    switch entry.kind {
    case .timeMoved, .loopMade:
      break
    case .written:
      wrote(bytes, name, at: entry.time)
    case .bytesArrived:
      arrived(Int(entry.value), from: name.other, at: entry.time)
    case .connecting, .connectArrived, .connectFailed, .connected, .endSent, .endArrived,
      .resetSent, .resetArrived, .closed, .listening, .listenerClosed, .timedOut, .lookedUp:
      add(.mark(lane: entry.machine, kind: .socket, text: text(of: entry)), at: entry.time)
    case .linkLost, .silenced, .restored, .corrupted, .resetInjected, .clogged, .unclogged,
      .readingStopped, .readingResumed, .partitioned, .partitionEnded, .paused, .resumed,
      .clockMoved, .processCrashed, .machineCrashed, .processStarted:
      add(.mark(lane: entry.machine, kind: .fault, text: text(of: entry)), at: entry.time)
    }
  }

  private func text(of entry: Trace.Entry) -> String {
    let place = entry.link == 0 ? "" : "link \(entry.link) \(entry.side): "
    return place + entry.text(machine: entry.machine.flatMap { names[$0] } ?? "it")
  }

  private mutating func wrote(_ bytes: [UInt8], _ name: EndName, at time: LinkInstant) {
    var flow = flows[name] ?? Flow()
    flow.written += bytes.count
    flow.reader.append(bytes)
    while let reading = flow.reader.nextNative() {
      flow.framed += WireFrame.headerLength + reading.frame.body.count
      flow.underWay.append((items.count, flow.framed))
      let damage = reading.isIntact ? "" : ", damaged"
      add(
        .frame(
          from: flow.machine ?? 0, to: flows[name.other]?.machine, link: name.link,
          label: reading.frame.label + damage, arrival: nil),
        at: time, isHeartbeat: [.ping, .pong].contains(reading.frame.kind))
    }
    flows[name] = flow
  }

  private mutating func arrived(_ count: Int, from name: EndName, at time: LinkInstant) {
    guard var flow = flows[name] else { return }
    flow.arrived += count
    while let first = flow.underWay.first, first.end <= flow.arrived {
      flow.underWay.removeFirst()
      guard case .frame(let from, _, let link, let label, _) = items[first.item].event else {
        continue
      }
      items[first.item].event = .frame(
        from: from, to: flows[name.other]?.machine, link: link, label: label, arrival: time)
    }
    flows[name] = flow
  }

  /// The timeline so far.
  var timeline: SimulationTimeline {
    let sorted = names.keys.sorted()
    let machines = sorted.filter(clients.contains) + sorted.filter { !clients.contains($0) }
    var lanes: [Int: Int] = [:]
    for (lane, machine) in machines.enumerated() { lanes[machine] = lane }
    let placed = items.map { item -> SimulationTimeline.Item in
      var item = item
      switch item.event {
      case .frame(let from, let to, let link, let label, let arrival):
        item.event = .frame(
          from: lanes[from] ?? 0, to: to.flatMap { lanes[$0] }, link: link, label: label,
          arrival: arrival)
      case .mark(let lane, let kind, let text):
        item.event = .mark(lane: lane.flatMap { lanes[$0] }, kind: kind, text: text)
      }
      return item
    }
    return SimulationTimeline(lanes: machines.compactMap { names[$0] }, items: placed)
  }
}

extension WireFrame {
  /// Kind, type or code, serial, credit and size, in readable form.
  var label: String {
    var words = ["\(kind)"]
    switch kind {
    case .request, .push: words.append("type \(tag)")
    case .response:
      words.append("\(tag & 0x7F_FFFF)")
      if tag & 0x80_0000 != 0 { words.append("refused") }
    case .credit: words += grantedCredit.map { ["\($0)"] } ?? []
    default: break
    }
    if serial >= 50 {
      words.append(serial & 0x8000_0000 == 0 ? "#\(serial)" : "#s\(serial & 0x7FFF_FFFF)")
    }
    if let fields = goAwayFields {
      words.append("\(fields.code), \(fields.requestsAccepted) accepted")
    }
    if kind == .request, let metadata {
      if metadata.items { words.append("with items") }
      if let credit = metadata.credit { words.append("credit \(credit)") }
    }
    if !body.isEmpty, grantedCredit == nil { words.append("\(body.count) B") }
    if moreFollows { words.append("…") }
    return words.joined(separator: " ")
  }
}
