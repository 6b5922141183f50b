/// A message of which fragments have come and the last has not.
struct Assembly: Equatable, Sendable {
  let tag: UInt32
  let flags: FrameFlags
  /// Whether it is a response that this side may wait for, whose memory the caller answers for.
  let isAwaited: Bool
  var body: [UInt8] = []
  /// The message was refused: its other fragments are read and forgotten.
  var isDiscarding = false
  /// When its last fragment came.
  var touched: LinkInstant
}

extension Session {
  /// Takes a frame while fragments are about: it begins, continues or ends a message, or is whole.
  mutating func acceptFragment(
    _ head: FrameHead, _ slice: BodySlice
  ) throws(Violation) -> Arrival? {
    if assemblies.contains(head.serial) { return try continueAssembly(head, slice) }
    guard head.flags.contains(.more) else { return try acceptMessage(head, slice) }
    if head.kind == .request {
      guard !inbound.contains(head.serial) else { throw Violation(.serialInUse, head) }
      if let refusal = countRequest(of: slice.count) {
        try discard(head)
        refuse(head.serial, refusal)
        return nil
      }
      inbound.insert(Inbound(state: .assembling), for: head.serial)
      assembling += 1
    }
    begin(head)
    try grow(head, slice)
    if head.kind == .response { tell(.collect(serial: head.serial)) }
    return nil
  }

  private mutating func continueAssembly(
    _ head: FrameHead, _ slice: BodySlice
  ) throws(Violation) -> Arrival? {
    let tag = assemblies.update(head.serial) { $0.tag }
    guard head.tag == tag, !head.flags.contains(.metadata) else {
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
    assembling -= 1
    handlerBytes += arrival.byteCount
    _ = inbound.update(head.serial) {
      $0.state = .running
      $0.bytes = arrival.byteCount
    }
    return arrival
  }

  private mutating func begin(_ head: FrameHead, isDiscarding: Bool = false) {
    let isAwaited = head.kind == .response && settings.role == .client
    assemblies.insert(
      Assembly(
        tag: head.tag, flags: head.flags, isAwaited: isAwaited, isDiscarding: isDiscarding,
        touched: now),
      for: head.serial)
    // Its own deadline bounds a response.
    if head.kind != .response, timers[.message] == .distantFuture {
      timers[.message] = now + settings.messageTimeout
    }
  }

  /// Adds a fragment's bytes, or gives the message up when they are too many.
  private mutating func grow(_ head: FrameHead, _ slice: BodySlice) throws(Violation) {
    let now = now
    let held = assemblies.update(head.serial) { assembly in
      assembly.touched = now
      return assembly.isDiscarding ? nil : (assembly.body.count, assembly.isAwaited)
    }
    guard let held, let (count, isAwaited) = held else { return }
    let size = count + slice.count
    let isOverLimit = size > settings.maxBody
    let isTooMuch = !isAwaited && requestBytes + slice.count > settings.maxRequestBytes
    guard isOverLimit || isTooMuch else {
      assemblyBytes += slice.count
      if isAwaited { awaitedBytes += slice.count }
      unsafe input.withStorage { storage in
        // The fragment stands in the input, taken but not yet appended to.
        let bytes = unsafe UnsafeRawBufferPointer(
          rebasing: storage[slice.start..<slice.start + slice.count])
        _ = assemblies.update(head.serial) { unsafe $0.body.append(contentsOf: bytes) }
      }
      return
    }
    guard head.kind == .request else {
      throw Violation(.lengthOverLimit, head, value: UInt64(size))
    }
    if inbound.remove(head.serial) != nil { assembling -= 1 }
    try discard(head)
    refuse(head.serial, isOverLimit ? .tooLarge : .tooManyBytes)
  }

  /// Remembers that the other fragments of a refused request are to be read and forgotten.
  ///
  /// A peer that is refused stops and cancels; one that goes on to begin messages wants the memory.
  private mutating func discard(_ head: FrameHead) throws(Violation) {
    _ = removeAssembly(head.serial)
    guard discarding < max(16, settings.maxInFlight) else {
      throw Violation(.lengthOverLimit, head)
    }
    discarding += 1
    begin(head, isDiscarding: true)
  }

  private mutating func removeAssembly(_ serial: UInt32) -> Assembly? {
    guard let assembly = assemblies.remove(serial) else { return nil }
    assemblyBytes -= assembly.body.count
    if assembly.isAwaited { awaitedBytes -= assembly.body.count }
    if assembly.isDiscarding { discarding -= 1 }
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
    for serial in assemblies.keys.sorted() {
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
      if inbound.remove(serial) != nil { assembling -= 1 }
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
