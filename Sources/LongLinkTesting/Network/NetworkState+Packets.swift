// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
internal import LongLinkCore

// How packets travel.
extension NetworkState {
  /// Sends a packet to the other end, after all earlier packets.
  mutating func send(_ packet: Packet, from end: LinkEnd) {
    let output = end.output
    guard !isSilent(end) else {
      output.held.append(packet)
      return awaitAcknowledgement(end)
    }
    guard case .bytes(let bytes) = packet else {
      return deliver(packet, from: end, leavingAt: max(now, output.freeAt))
    }
    for (piece, time) in output.pieces(of: bytes, at: now) {
      deliver(.bytes(piece), from: end, leavingAt: time)
    }
  }

  private mutating func deliver(_ packet: Packet, from end: LinkEnd, leavingAt time: LinkInstant) {
    let output = end.output
    let arrival = time + output.conditions.drawLatency(using: &generator)
    output.lastArrival = max(arrival, output.lastArrival)
    schedule.add(
      .packet(packet, to: end.name.other, epoch: output.epoch),
      at: output.lastArrival
    )
  }

  /// Handles a packet that has reached its destination.
  mutating func arrived(_ packet: Packet, at name: EndName, epoch: UInt32) {
    guard let end = end(name), let sender = self.end(name.other)?.output, sender.epoch == epoch
    else { return }
    // A machine that is off does nothing; the sender keeps trying.
    guard !machines[end.machine].isOff else { return sender.held.append(packet) }
    guard end.isOpen, !end.isBroken else { return turnAway(packet, at: end) }
    switch packet {
    case .bytes(let bytes):
      record(.bytesArrived, name, value: bytes.count, bytes: bytes)
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

  /// Answers bytes for a closed or broken end with a reset; ignores other packets.
  private mutating func turnAway(_ packet: Packet, at end: LinkEnd) {
    guard case .bytes = packet else { return }
    record(.resetSent, end.name)
    send(.reset, from: end)
  }

  /// Fails an end. Its owner gets the error once.
  mutating func fail(_ end: LinkEnd, _ errno: CInt) {
    if end.phase == .connecting { end.phase = .failed(errno) }
    end.error = errno
    end.isBroken = true
    end.output.drop()
    mark(.end(end.name))
  }

  // MARK: Acknowledgements

  /// Starts the timeout for an end's unacknowledged packets, if the end has one.
  private mutating func awaitAcknowledgement(_ end: LinkEnd) {
    guard end.isOpen, end.givesUpAt == nil, let timeout = end.userTimeout else { return }
    end.givesUpAt = now + timeout
    schedule.add(.timeout(end.name), at: now + timeout)
  }

  mutating func acknowledgementTimedOut(_ name: EndName) {
    // A later acknowledgement has cleared or restarted the timeout.
    guard let end = end(name), end.givesUpAt == now else { return }
    end.givesUpAt = nil
    guard end.isOpen, !end.output.held.isEmpty else { return }
    record(.timedOut, name)
    fail(end, ETIMEDOUT)
  }
}
