// SPDX-License-Identifier: Apache-2.0

extension Connection {
  /// Takes a frame while fragments are about: it begins, continues or ends a message, or is whole.
  mutating func acceptFragment(
    _ head: FrameHead, _ slice: BodySlice
  ) throws(Violation) -> Arrival? {
    if assemblies.contains(head.serial) { return try continueAssembly(head, slice) }
    guard head.flags.contains(.more) else { return try acceptMessage(head, slice) }
    if head.kind == .request {
      guard !peerRequests.contains(head.serial) else { throw Violation(.serialInUse, head) }
      if let refusal = countRequest(of: slice.count) {
        try discard(head)
        refuse(head.serial, refusal)
        return nil
      }
      peerRequests.begin(head.serial)
    }
    begin(head)
    try grow(head, slice)
    if head.kind == .response { tell(.collect(serial: head.serial)) }
    return nil
  }

  private mutating func continueAssembly(
    _ head: FrameHead, _ slice: BodySlice
  ) throws(Violation) -> Arrival? {
    guard head.tag == assemblies[head.serial]?.tag, !head.flags.contains(.metadata) else {
      throw Violation(.fragmentMismatch, head)
    }
    guard head.length <= Wire.fragmentLimit else {
      throw Violation(.sizeNotAllowed, head, value: UInt64(head.length))
    }
    try grow(head, slice)
    guard !head.flags.contains(.more), let whole = removeAssembly(head.serial) else { return nil }
    guard !whole.isDiscarding else { return nil }
    assembled = whole.body
    var joined = head
    joined.flags = whole.flags.subtracting(.more)
    joined.length = assembled.count
    let body = BodySlice(start: 0, count: assembled.count, isAssembled: true)
    let arrival = try arrival(joined, body)
    guard head.kind == .request else { return deliver(arrival) }
    peerRequests.complete(head.serial, holding: arrival.byteCount)
    return arrival
  }

  private mutating func begin(_ head: FrameHead, isDiscarding: Bool = false) {
    let isAwaited = head.kind == .response && settings.role == .client
    assemblies.begin(
      head.serial,
      Assembly(
        tag: head.tag, flags: head.flags, isAwaited: isAwaited, isDiscarding: isDiscarding,
        touched: now))
    // Its own deadline bounds a response.
    if head.kind != .response, timers[.message] == .distantFuture {
      timers[.message] = now + settings.messageTimeout
    }
  }

  /// Adds a fragment's bytes, or gives the message up when they are too many.
  private mutating func grow(_ head: FrameHead, _ slice: BodySlice) throws(Violation) {
    assemblies.touch(head.serial, at: now)
    guard let (count, isAwaited) = assemblies.held(by: head.serial) else { return }
    let size = count + slice.count
    let isOverLimit = size > settings.maxBody
    let isTooMuch = !isAwaited && requestBytes + slice.count > settings.maxRequestBytes
    guard isOverLimit || isTooMuch else {
      unsafe input.withStorage { storage in
        // The fragment stands in the input, taken but not yet appended to.
        let bytes = unsafe UnsafeRawBufferPointer(
          rebasing: storage[slice.start..<slice.start + slice.count])
        unsafe assemblies.append(bytes, to: head.serial)
      }
      return
    }
    guard head.kind == .request else {
      throw Violation(.lengthOverLimit, head, value: UInt64(size))
    }
    peerRequests.abandon(head.serial)
    try discard(head)
    refuse(head.serial, isOverLimit ? .tooLarge : .tooManyBytes)
  }

  /// Remembers that the other fragments of a refused request are to be read and forgotten.
  ///
  /// A peer that is refused stops and cancels; one that goes on to begin messages wants the memory.
  private mutating func discard(_ head: FrameHead) throws(Violation) {
    _ = removeAssembly(head.serial)
    guard assemblies.discarding < max(16, settings.maxInFlight) else {
      throw Violation(.lengthOverLimit, head)
    }
    begin(head, isDiscarding: true)
  }

  private mutating func removeAssembly(_ serial: UInt32) -> Assembly? {
    guard let assembly = assemblies.remove(serial) else { return nil }
    if assemblies.isEmpty { timers.clear(.message) }
    return assembly
  }

  /// Forgets a message of which fragments have come. True when there was one that was discarded.
  mutating func dropAssembly(_ serial: UInt32) -> Bool {
    removeAssembly(serial)?.isDiscarding ?? false
  }

  /// Stops collecting a response that nobody waits for any more.
  ///
  /// Nothing is remembered of it, since its last fragment may never come. Should it come, then as a
  /// response that nobody waits for.
  package mutating func abandonResponse(_ serial: UInt32) {
    _ = removeAssembly(serial)
  }

  /// Gives up the messages whose next fragments have not come for too long.
  ///
  /// A request is refused, and the rest of it is dropped should it come. A push cannot be refused,
  /// and no other one can pass it, so that it ends the connection.
  mutating func messageElapsed() {
    // What keeps the next fragment from coming may be this side.
    guard !holdsReading else {
      timers[.message] = now + settings.messageTimeout
      return
    }
    var next = LinkInstant.distantFuture
    for serial in assemblies.serials {
      guard let assembly = assemblies[serial], !assembly.isDiscarding,
        !settings.role.owns(serial)
      else { continue }
      let due = max(assembly.touched, readingResumed) + settings.messageTimeout
      guard due <= now else {
        next = min(next, due)
        continue
      }
      counters.stalledMessages += 1
      let kind = serial == Wire.plainPushSerial ? FrameKind.push : .request
      let head = FrameHead(
        kind, flags: assembly.flags, tag: assembly.tag, serial: serial, length: 0)
      peerRequests.abandon(serial)
      guard kind == .request, (try? discard(head)) != nil else {
        violate(Violation(.frameTimeout, head))
        return
      }
      refuse(serial, .stalled)
    }
    // Looking at all of them must not be frequent.
    timers[.message] = next == .distantFuture ? next : max(next, now + settings.messageTimeout / 8)
  }
}
