// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
internal import LongLinkCore

// The operations of an end's owner and their results, as on Linux.
extension NetworkState {
  func end(_ name: EndName) -> LinkEnd? {
    links[name.link]?.end(name.side)
  }

  /// Gives an accepted end to a loop, unless the end was closed in the meantime.
  func adopt(_ name: EndName, on loop: Int) {
    guard let end = end(name), end.isOpen else { return }
    end.loop = loop
  }

  /// Whether connecting has finished; throws if it failed.
  func finishConnecting(_ name: EndName) throws(SimulatedErrno) -> Bool {
    guard let end = end(name) else { throw SimulatedErrno(EBADF) }
    switch end.phase {
    case .connecting: return false
    case .failed(let errno): throw SimulatedErrno(errno)
    case .connected, .closed: return true
    }
  }

  /// Reads arrived bytes; returns their number, 0 at the end, or nil if there are none yet.
  mutating func read(
    _ name: EndName, into buffer: inout OutputRawSpan
  ) throws(SimulatedErrno) -> Int? {
    guard let end = end(name), let sender = self.end(name.other)?.output else {
      throw SimulatedErrno(readError(name))
    }
    guard !end.readsNothing || end.isBroken else { return nil }
    guard !end.inbox.isEmpty else {
      if case .failed(let errno) = end.phase { throw SimulatedErrno(errno) }
      if let errno = end.error.take() { throw SimulatedErrno(errno) }
      if end.hasEnded { end.hasReadEnd = true }
      return end.hasEnded || end.isBroken ? 0 : nil
    }
    let count = min(draw(sender.conditions.readSize), end.inbox.count, buffer.freeCapacity)
    end.inbox.take(count, into: &buffer)
    let hadRoom = sender.room > 0
    sender.unread -= count
    if !hadRoom { mark(.end(name.other)) }
    return count
  }

  /// The errno of reading from an end that has no peer.
  private func readError(_ name: EndName) -> CInt {
    guard let end = end(name) else { return EBADF }
    if case .failed(let errno) = end.phase { return errno }
    return ENOTCONN
  }

  /// Sends a prefix of the bytes, and returns its length; 0 if there is no room.
  mutating func write(_ name: EndName, _ bytes: RawSpan) throws(SimulatedErrno) -> Int {
    guard let end = end(name) else { throw SimulatedErrno(EBADF) }
    if case .failed(let errno) = end.phase { throw SimulatedErrno(errno) }
    if end.phase == .connecting { return 0 }
    if let errno = end.error.take() { throw SimulatedErrno(errno) }
    if end.isBroken || end.isShut { throw SimulatedErrno(EPIPE) }
    let room = end.output.room
    guard room > 0, bytes.byteCount > 0 else { return 0 }
    let count = min(draw(end.output.conditions.writeSize), bytes.byteCount, room)
    var sent = [UInt8](decoding: bytes.extracting(0..<count))
    // The elements are bytes: there is no padding between them.
    let digest = hashesBytes ? unsafe Adler32.checksum(of: sent.span.bytes) : 0
    let isFull = count < bytes.byteCount || count == room
    record(.written, name, value: count, digest: digest, isFull: isFull, bytes: sent)
    for flip in end.output.take(&sent) {
      record(.corrupted, name, value: flip.offset, digest: UInt32(flip.bit))
    }
    send(.bytes(sent), from: end)
    return count
  }

  mutating func shutDownWriting(_ name: EndName) {
    guard let end = end(name), end.phase == .connected, !end.isShut, !end.isBroken else { return }
    end.isShut = true
    record(.endSent, name)
    send(.end, from: end)
    mark(.end(name))
  }

  /// Closes an end. If it has unread bytes, the peer gets a reset.
  mutating func close(_ name: EndName) {
    guard let end = end(name), end.isOpen else { return }
    if end.phase == .connecting || !end.inbox.isEmpty { return reset(name) }
    record(.closed, name)
    if end.phase == .connected, !end.isShut, !end.isBroken { send(.end, from: end) }
    retire(end)
  }

  /// Closes an end immediately, and drops its packets in flight.
  mutating func reset(_ name: EndName) {
    guard let end = end(name), end.isOpen else { return }
    // On unix(7) sockets, only unread bytes cause a reset.
    if case .unix = end.peer?.storage, end.phase == .connected, end.inbox.isEmpty {
      return close(name)
    }
    record(.resetSent, name)
    if !end.isBroken, self.end(name.other) != nil {
      end.output.drop()
      send(.reset, from: end)
    }
    retire(end)
  }

  /// Clears the state of an end's owner, and removes the link if both ends are closed.
  mutating func retire(_ end: LinkEnd) {
    end.phase = .closed
    end.interest = []
    end.inbox = ByteQueue()
    if links[end.name.link]?.isOpen == false { links[end.name.link] = nil }
  }
}

extension ByteQueue {
  /// Moves bytes from the front into a span that has room for them.
  mutating func take(_ count: Int, into buffer: inout OutputRawSpan) {
    let start = position
    unsafe withStorage { storage in
      unsafe buffer.appendBytes(UnsafeRawBufferPointer(rebasing: storage[start..<start + count]))
    }
    removeFirst(count)
  }
}
