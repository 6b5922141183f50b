// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import LongLinkCore
internal import LongLinkTesting
internal import LongLinkTransport

/// Watches the ends of links in a simulated world: when each received bytes, and whether its owner
/// closed it in time after the peer died.
///
/// It does not look into connections. It only uses the bytes written and received, the closes, and
/// the configurations of both sides.
struct LinkWatch {
  /// A watched process.
  struct Owner {
    var name: String
    var heartbeat: Heartbeat
    /// The time within which the first message has to arrive on a link.
    var handshake: Duration
    /// Whether the owner authenticates its peer after the first message, within the same time.
    var authenticates = false
    var pausedSince: LinkInstant?
    /// Since when the owner's clock has run at the world's pace: no jump and no pause since.
    var steadySince = LinkInstant(nanoseconds: 0)
  }

  private struct End {
    let machine: Int
    /// The other side's machine; nil until it has accepted. It may crash while this end stays open.
    var peer: Int?
    let since: LinkInstant
    var lastArrival: LinkInstant
    var received = 0
    var written = 0
    var frames = FrameFinder()
    /// Whether the written bytes are encrypted. The oracle then gets the plain bytes separately.
    var isSecured = false
    /// Whether the last plain bytes contained the first frame (or the first ping), so that its
    /// encrypted bytes may still wait to be written.
    var endsWithFirst = false
    var endsWithPing = false
    /// Whether plain bytes are being written, and how many encrypted bytes were written before
    /// them.
    var isWriting = false
    var writtenBefore = 0

    /// Whether encrypted bytes of the last `count` plain bytes still wait to be written. A TLS
    /// record has at most 16,384 plain bytes.
    func keeps(_ count: Int) -> Bool {
      let records = (count + 16_383) / 16_384
      return written - writtenBefore < count + records * LinkWatch.recordOverhead
    }
    var pings = PingWatch()
    /// When the peer last received bytes that were written before the ping.
    var lastDrain = LinkInstant(nanoseconds: 0)
    var readsNothing = false
    /// The number of bytes that arrived while this end read nothing, or its process was frozen.
    var unread = 0
  }

  /// How late a timer may fire, in nanoseconds.
  private static let lateness: Int64 = 250_000_000
  /// The time allowed beyond each bound, in nanoseconds: one second, because a closing side waits
  /// for its peer, and the lateness of timers.
  static let slack = 1_000_000_000 + lateness
  /// How long a closed TLS stream waits for its last bytes to be written, in nanoseconds.
  private static let longestFlush: Int64 = 5_000_000_000
  /// The number of bytes that a TLS record adds to its plain bytes.
  private static let recordOverhead = 22

  private var owners: [Int: Owner] = [:]
  private var ends: [EndName: End] = [:]
  /// The ends that cannot write at the moment, and the links on which the network damaged bytes.
  private var clogged: Set<EndName> = []
  private var damaged: Set<Int> = []
  /// Ends that were secured before their first event.
  private var securedEarly: Set<EndName> = []
  /// Where the first frame of a secured end ends, as a count of its written bytes.
  private var firstEnds: [EndName: Int] = [:]
  /// The end that each machine closed last as initiator. Why it closed is reported only afterwards.
  private var lastClosed: [Int: (name: EndName, end: End)] = [:]
  /// The links made by each machine, with their addresses.
  private var connects: [(machine: Int, address: SocketAddress?, link: Int)] = []
  /// The times during which processes were frozen.
  private(set) var pauses: [(from: LinkInstant, to: LinkInstant)] = []
  private(set) var broken: [(promise: OraclePromise, time: LinkInstant, detail: String)] = []

  mutating func watch(_ owner: Owner, on machine: Int) {
    var owner = owner
    if let former = owners[machine] {
      // If a machine has several processes, the longest of their bounds applies.
      owner.heartbeat.interval = max(owner.heartbeat.interval, former.heartbeat.interval)
      owner.heartbeat.timeout = max(owner.heartbeat.timeout, former.heartbeat.timeout)
      owner.handshake = max(owner.handshake, former.handshake)
      owner.authenticates = owner.authenticates || former.authenticates
      owner.pausedSince = former.pausedSince
      owner.steadySince = former.steadySince
    }
    owners[machine] = owner
  }

  mutating func observed(_ entry: Trace.Entry, _ bytes: [UInt8]) {
    let name = entry.end
    switch entry.kind {
    case .connecting:
      guard let machine = entry.machine else { return }
      ends[name] = End(machine: machine, since: entry.time, lastArrival: entry.time)
      connects.append((machine, entry.address, entry.link))
    case .written:
      wrote(name, entry, bytes)
    case .bytesArrived:
      arrived(name, entry)
    case .readingStopped:
      adopt(name, entry)
      ends[name]?.readsNothing = true
    case .readingResumed:
      ends[name]?.readsNothing = false
      // The end now reads what has arrived meanwhile.
      if let end = ends[name], end.unread > 0 { ends[name]?.lastArrival = entry.time }
      readsOn(name)
    case .closed, .resetSent:
      check(name, at: entry.time, "was closed")
      if name.side == .initiator, let end = ends[name] { lastClosed[end.machine] = (name, end) }
      ends[name] = nil
    case .clogged:
      clogged.insert(name)
      ends[name]?.pings.wrote(isFull: true, at: entry.time)
    case .unclogged: clogged.remove(name)
    case .corrupted: damaged.insert(entry.link)
    case .paused:
      if let machine = entry.machine { owners[machine]?.pausedSince = entry.time }
    case .resumed:
      wentOn(entry)
    case .clockMoved:
      if let machine = entry.machine { owners[machine]?.steadySince = entry.time }
    case .processCrashed, .machineCrashed:
      wentOn(entry)
      ends = ends.filter { $0.value.machine != entry.machine }
    default:
      break
    }
  }

  /// Ends the pause of a machine, if it was frozen.
  private mutating func wentOn(_ entry: Trace.Entry) {
    guard let machine = entry.machine, let since = owners[machine]?.pausedSince else { return }
    pauses.append((since, entry.time))
    owners[machine]?.pausedSince = nil
    owners[machine]?.steadySince = entry.time
    for name in ends.keys { readsOn(name) }
  }

  /// Counts all received bytes of an end as read, if it can read now.
  private mutating func readsOn(_ name: EndName) {
    guard let end = ends[name], !end.readsNothing, owners[end.machine]?.pausedSince == nil
    else { return }
    ends[name]?.unread = 0
  }

  private mutating func wrote(_ name: EndName, _ entry: Trace.Entry, _ bytes: [UInt8]) {
    adopt(name, entry)
    guard var end = ends[name] else { return }
    let isAlone = isAlone(bytes.count, after: end.written, name)
    end.written += bytes.count
    if end.isSecured {
      // These encrypted bytes had to wait. Until they are written, the stream takes no plain bytes.
      if end.endsWithFirst, !end.isWriting { firstEnds[name] = end.written }
      if end.endsWithPing, !end.isWriting { end.pings.pingEnds(at: end.written) }
    } else {
      end.frames.take(bytes)
      if let pingEnd = end.frames.takePingEnd() {
        _ = end.pings.wrotePing(
          to: pingEnd, isAlone: isAlone, length: PingWatch.pingLength, in: silence(end),
          at: entry.time)
      }
    }
    end.pings.wrote(isFull: entry.isFull, at: entry.time)
    ends[name] = end
  }

  /// Records that an end is secured from now on.
  mutating func secured(_ name: EndName) {
    ends[name]?.isSecured = true
    if ends[name] == nil { securedEarly.insert(name) }
  }

  /// Records that plain bytes are about to be written to a secured end.
  mutating func writesPlain(_ name: EndName) {
    guard var end = ends[name] else { return }
    (end.isWriting, end.writtenBefore) = (true, end.written)
    ends[name] = end
  }

  /// Records that plain bytes were written to a secured end. Before the call, their encrypted bytes
  /// were written as far as there was room.
  mutating func wrotePlain(_ bytes: [UInt8], _ name: EndName, at time: LinkInstant) {
    guard var end = ends[name] else { return }
    end.isWriting = false
    defer { ends[name] = end }
    guard !bytes.isEmpty else { return }
    end.frames.take(bytes)
    (end.endsWithFirst, end.endsWithPing) = (false, false)
    if firstEnds[name] == nil, let length = end.frames.firstLength, end.frames.position >= length {
      firstEnds[name] = end.written
      end.endsWithFirst = end.keeps(bytes.count)
    }
    if end.frames.takePingEnd() != nil {
      let counts = end.pings.wrotePing(
        to: end.written, isAlone: isAlone(bytes.count, after: end.writtenBefore, name),
        length: end.written - end.writtenBefore, in: silence(end), at: time)
      end.endsWithPing = counts && end.keeps(bytes.count)
    }
  }

  /// Whether `count` bytes are just a ping, and all `written` bytes before them have arrived.
  private func isAlone(_ count: Int, after written: Int, _ name: EndName) -> Bool {
    count == PingWatch.pingLength && written == ends[name.other]?.received
  }

  private func silence(_ end: End) -> PingWatch.Silence {
    guard let owner = owners[end.machine] else {
      return PingWatch.Silence(start: end.lastArrival, due: end.lastArrival)
    }
    let start = max(end.lastArrival, owner.steadySince)
    let interval = agreed(owner, end.peer.flatMap { owners[$0] }).interval
    return PingWatch.Silence(
      start: start, due: start + (interval.clampedNanoseconds + Self.lateness))
  }

  private mutating func arrived(_ name: EndName, _ entry: Trace.Entry) {
    adopt(name, entry)
    check(name, at: entry.time, "had not been closed when bytes came")
    guard var end = ends[name] else { return }
    end.lastArrival = entry.time
    end.received += Int(entry.value)
    let isFrozen = owners[end.machine]?.pausedSince != nil
    if end.readsNothing || isFrozen { end.unread += Int(entry.value) }
    end.pings.heard()
    ends[name] = end
    noteDrain(of: name.other, total: end.received, count: Int(entry.value), at: entry.time)
  }

  /// Records that an end's bytes have arrived at its peer. As long as bytes that precede its ping
  /// arrive, the end must go on waiting for the pong.
  private mutating func noteDrain(of name: EndName, total: Int, count: Int, at time: LinkInstant) {
    guard let end = ends[name] else { return }
    // The last of those bytes may arrive together with the ping and what follows it.
    if end.pings.isAhead(total - count, in: silence(end)) { ends[name]?.lastDrain = time }
  }

  /// Starts to watch an accepted end at its first event.
  private mutating func adopt(_ name: EndName, _ entry: Trace.Entry) {
    guard name.side == .acceptor, ends[name] == nil, let machine = entry.machine,
      let peer = ends[name.other]?.machine
    else { return }
    ends[name] = End(
      machine: machine, peer: peer, since: entry.time, lastArrival: entry.time)
    ends[name]?.isSecured = securedEarly.remove(name) != nil
    ends[name.other]?.peer = machine
  }

  /// Checks the ends that are still open at the end of a run.
  mutating func checkAll(at now: LinkInstant) {
    let names = ends.keys.sorted { ($0.link, $0.side.rawValue) < ($1.link, $1.side.rawValue) }
    for name in names { check(name, at: now, "is still open") }
  }

  /// Checks whether an end stayed open for longer than detecting a dead peer may take.
  private mutating func check(_ name: EndName, at now: LinkInstant, _ state: String) {
    guard let end = ends[name], let owner = owners[end.machine], owner.pausedSince == nil else {
      return
    }
    var limit: LinkInstant
    let handshake =
      max(end.since, owner.steadySince)
      + max(owner.handshake, owner.heartbeat.timeout).clampedNanoseconds
    if isOpen(name, end) {
      let agreed = agreed(owner, end.peer.flatMap { owners[$0] })
      let suspicion =
        max(end.lastArrival, owner.steadySince) + agreed.interval.clampedNanoseconds
      let timeout = agreed.timeout.clampedNanoseconds
      // While it waits, an end checks eight times whether the bytes before its ping were
      // acknowledged.
      let look = end.lastDrain > suspicion ? timeout / 8 : 0
      limit = max(suspicion, end.lastDrain) + timeout + look
      if owner.authenticates { limit = max(limit, handshake) }
    } else {
      limit = handshake
    }
    guard now > limit + Self.slack + (lingers(name, end) ? Self.longestFlush : 0) else { return }
    let last = isOpen(name, end) ? end.lastArrival : end.since
    broken.append(
      (
        .deadPeersFound, now,
        """
        \(owner.name), link \(name.link): nothing had arrived for \(seconds(now - last)), the link \
        should have been closed by \(limit), and it \(state)
        """
      ))
  }

  /// Whether a secured end has bytes that the peer has not received: closing it then takes longer.
  private func lingers(_ name: EndName, _ end: End) -> Bool {
    guard end.isSecured else { return false }
    return clogged.contains(name) || ends[name.other].map { $0.received < end.written } ?? true
  }

  /// Whether the other side's first message has arrived completely and can be read.
  private func isOpen(_ name: EndName, _ end: End) -> Bool {
    let read = end.received - end.unread
    if end.isSecured { return firstEnds[name.other].map { read >= $0 } ?? false }
    guard let length = ends[name.other]?.frames.firstLength else { return read > 0 }
    return read >= length
  }

  private func agreed(_ owner: Owner, _ peer: Owner?) -> Heartbeat {
    guard let peer else { return owner.heartbeat }
    return Heartbeat(
      interval: min(owner.heartbeat.interval, peer.heartbeat.interval),
      timeout: min(owner.heartbeat.timeout, peer.heartbeat.timeout))
  }

  /// Removes and returns the oldest connect from a machine to an address.
  mutating func takeLink(of machine: Int, to address: SocketAddress) -> Int? {
    let index = connects.firstIndex { $0.machine == machine && $0.address == address }
    return index.map { connects.remove(at: $0).link }
  }

  /// Checks that a client was right when it considered its peer dead and closed the link.
  mutating func tookForDead(link: Int, on machine: Int, at now: LinkInstant) {
    // If the network damaged a record's length, the record may never be complete, whatever arrives.
    guard let (name, end) = lastClosed[machine], name.link == link, !end.readsNothing,
      !end.isSecured || !damaged.contains(link),
      let owner = owners[machine]
    else { return }
    let agreed = agreed(owner, end.peer.flatMap { owners[$0] })
    let silence = now - end.lastArrival
    guard silence < agreed.timeout.clampedNanoseconds else { return }
    broken.append(
      (
        .livePeersKept, now,
        """
        \(owner.name), link \(link): it considered its peer dead \(seconds(silence)) after bytes \
        had arrived, within the timeout of \(agreed.timeout)
        """
      ))
  }

  private func seconds(_ nanoseconds: Int64) -> String {
    "\(LinkInstant(nanoseconds: nanoseconds))"
  }
}
