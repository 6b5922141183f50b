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
    /// Since when the owner's clock has run like the world's.
    var steadySince = LinkInstant(nanoseconds: 0)
  }

  private struct End {
    let machine: Int
    /// The other side's machine, once it has accepted. It may crash and leave this end behind.
    var peer: Int?
    let since: LinkInstant
    var lastArrival: LinkInstant
    var received = 0
    var written = 0
    var frames = FrameFinder()
    /// Whether the written bytes are encrypted, and the plain ones come separately.
    var isSecured = false
    /// Whether the first frame, and the first ping, are part of the last plain bytes: the encrypted
    /// ones may still be written.
    var endsWithFirst = false
    var endsWithPing = false
    /// Whether plain bytes are being written, and the count of bytes written before.
    var isWriting = false
    var writtenBefore = 0

    /// Whether encrypted bytes of this many plain ones still wait to be written: each record has
    /// 16,384 plain bytes at most.
    func keeps(_ count: Int) -> Bool {
      let records = (count + 16_383) / 16_384
      return written - writtenBefore < count + records * LinkWatch.recordOverhead
    }
    var pings = PingWatch()
    /// When the peer last received bytes that were written before the ping.
    var lastDrain = LinkInstant(nanoseconds: 0)
    var readsNothing = false
    /// The count of bytes received while it did not read, or its process was frozen.
    var unread = 0
  }

  /// How late timers may be.
  private static let lateness: Int64 = 250_000_000
  /// Allowed beyond the bound: one second, because a closing side waits for its peer, and a little
  /// for timers.
  static let slack = 1_000_000_000 + lateness
  /// How long a closed stream of TLS waits for its last bytes to be taken.
  private static let longestFlush: Int64 = 5_000_000_000
  /// What a record of TLS adds to its bytes.
  private static let recordOverhead = 22

  private var owners: [Int: Owner] = [:]
  private var ends: [EndName: End] = [:]
  /// The ends whose writes take nothing, and the links whose bytes were damaged.
  private var clogged: Set<EndName> = []
  private var damaged: Set<Int> = []
  /// Secured ends that have no event yet.
  private var securedEarly: Set<EndName> = []
  /// Where the first frame of a secured end ends, counted in written bytes, once it is written.
  private var firstEnds: [EndName: Int] = [:]
  /// The end that each machine last closed as initiator: its reason is reported only afterwards.
  private var lastClosed: [Int: (name: EndName, end: End)] = [:]
  /// The links made by each machine, with their addresses.
  private var connects: [(machine: Int, address: SocketAddress?, link: Int)] = []
  /// The times during which processes were frozen.
  private(set) var pauses: [(from: LinkInstant, to: LinkInstant)] = []
  private(set) var broken: [(promise: OraclePromise, time: LinkInstant, detail: String)] = []

  mutating func watch(_ owner: Owner, on machine: Int) {
    var owner = owner
    if let former = owners[machine] {
      // For several processes on one machine, the longest bound applies.
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
      // It reads now what has come meanwhile.
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

  /// A machine is no longer frozen.
  private mutating func wentOn(_ entry: Trace.Entry) {
    guard let machine = entry.machine, let since = owners[machine]?.pausedSince else { return }
    pauses.append((since, entry.time))
    owners[machine]?.pausedSince = nil
    owners[machine]?.steadySince = entry.time
    for name in ends.keys { readsOn(name) }
  }

  /// Marks all received bytes as read, if the end can read now.
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
      // Encrypted bytes that had to wait. Meanwhile a secured stream takes no plain bytes.
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

  /// An end is secured from now on.
  mutating func secured(_ name: EndName) {
    ends[name]?.isSecured = true
    if ends[name] == nil { securedEarly.insert(name) }
  }

  /// Plain bytes are going to be written to a secured end.
  mutating func writesPlain(_ name: EndName) {
    guard var end = ends[name] else { return }
    (end.isWriting, end.writtenBefore) = (true, end.written)
    ends[name] = end
  }

  /// Plain bytes were written to a secured end, and their encrypted ones before that, as far as
  /// there was room.
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

  /// Whether a number of bytes are a ping, and no bytes before them are on the way.
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

  /// Bytes of an end have arrived at the peer. While bytes before its ping are still arriving, the
  /// end has to wait.
  private mutating func noteDrain(of name: EndName, total: Int, count: Int, at time: LinkInstant) {
    guard let end = ends[name] else { return }
    // The last of them may arrive together with the ping and the bytes after it.
    if end.pings.isAhead(total - count, in: silence(end)) { ends[name]?.lastDrain = time }
  }

  /// Starts to watch an accepted end, at its first event.
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
      // Within the timeout it checks eight times whether bytes before the ping were acknowledged.
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

  /// Whether a secured end has bytes that are not taken. Once closed, it waits for that.
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

  /// Returns the oldest link from a machine to an address that was not returned before.
  mutating func takeLink(of machine: Int, to address: SocketAddress) -> Int? {
    let index = connects.firstIndex { $0.machine == machine && $0.address == address }
    return index.map { connects.remove(at: $0).link }
  }

  /// Checks a client that considered its peer dead, on a link that it has just closed.
  mutating func tookForDead(link: Int, on machine: Int, at now: LinkInstant) {
    // A record whose length is damaged may never be complete: its bytes are life for a while only.
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
