internal import LongLinkCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

// What the network does with what ends send.
extension World {
  /// Sends a packet to the other end, behind all that was sent before it.
  mutating func send(_ packet: Packet, from end: LinkEnd) {
    let output = end.output
    guard !output.isSilent else {
      output.held.append(packet)
      return awaitAcknowledgement(end)
    }
    output.lastArrival = max(now + drawLatency(output.conditions), output.lastArrival)
    schedule.add(
      .packet(packet, to: end.name.other, epoch: output.epoch),
      at: output.lastArrival
    )
  }

  /// A packet is at its destination.
  mutating func arrived(_ packet: Packet, at name: EndName, epoch: UInt32) {
    guard let end = end(name), self.end(name.other)?.output.epoch == epoch, !end.isBroken else {
      return
    }
    guard end.isOpen else { return turnAway(packet, at: end) }
    switch packet {
    case .bytes(let bytes):
      record(.bytesArrived, name, value: bytes.count)
      // The elements are bytes: there is no padding between them.
      unsafe end.inbox.append(bytes.span.bytes)
      self.end(name.other)?.output.arrived += bytes.count
      mark(.end(name))
    case .end:
      record(.endArrived, name)
      end.hasEnded = true
      mark(.end(name))
    case .reset:
      record(.resetArrived, name)
      // tcp(7): a reset after the peer's end is a broken pipe.
      fail(end, end.hasEnded ? EPIPE : ECONNRESET)
    }
  }

  /// Bytes for an end whose owner has closed it: their sender hears that nobody takes them.
  private mutating func turnAway(_ packet: Packet, at end: LinkEnd) {
    guard case .bytes = packet else { return }
    record(.resetSent, end.name)
    send(.reset, from: end)
  }

  /// Ends the use of an end with an error, which its owner hears once.
  private mutating func fail(_ end: LinkEnd, _ errno: CInt) {
    if end.phase == .connecting { end.phase = .failed(errno) }
    end.error = errno
    end.isBroken = true
    end.output.drop()
    mark(.end(end.name))
  }

  // MARK: Acknowledgements

  /// Watches for how long what an end sent has been lost, where its owner asked for that.
  private mutating func awaitAcknowledgement(_ end: LinkEnd) {
    guard end.isOpen, !end.hasTimeout, let timeout = end.userTimeout else { return }
    end.hasTimeout = true
    schedule.add(.timeout(end.name), at: now + timeout)
  }

  mutating func acknowledgementTimedOut(_ name: EndName) {
    guard let end = end(name), end.hasTimeout else { return }
    end.hasTimeout = false
    guard end.isOpen, !end.output.held.isEmpty else { return }
    record(.timedOut, name)
    fail(end, ETIMEDOUT)
  }

  // MARK: Faults

  /// Both ends hear at once that the connection is lost.
  mutating func lose(_ number: Int) {
    guard let link = links[number] else { return }
    record(.linkLost, link.initiator.name)
    for end in [link.initiator, link.acceptor] {
      if let end, end.isOpen, !end.isBroken { fail(end, ECONNRESET) }
    }
  }

  /// From now on nothing that this end sends arrives.
  mutating func silence(_ name: EndName) {
    guard let end = end(name), !end.output.isSilent else { return }
    record(.silenced, name)
    end.output.isSilent = true
  }

  /// Lets arrive what was lost, as the sender tries again, and all that follows.
  mutating func restore(_ name: EndName) {
    guard let end = end(name), end.output.isSilent else { return }
    record(.restored, name)
    end.output.isSilent = false
    end.hasTimeout = false
    let held = end.output.held
    end.output.held = []
    for packet in held { send(packet, from: end) }
  }
}
