/// A message of which fragments have come and the last has not.
struct Assembly: Equatable, Sendable {
  let tag: UInt32
  let flags: FrameFlags
  var body: [UInt8] = []
  /// The message was refused: its other fragments are read and forgotten.
  var isDiscarding = false
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
      if let code = countRequest() {
        try discard(head)
        refuse(head.serial, code)
        return nil
      }
      inbound.insert(Inbound(state: .assembling), for: head.serial)
    }
    assemblies.insert(Assembly(tag: head.tag, flags: head.flags), for: head.serial)
    try grow(head, slice)
    if head.kind == .response { effects.append(.collect(serial: head.serial)) }
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
    _ = inbound.update(head.serial) { $0.state = .running }
    return arrival
  }

  /// Adds a fragment's bytes, or gives the message up when they are too many.
  private mutating func grow(_ head: FrameHead, _ slice: BodySlice) throws(Violation) {
    let held = assemblies.update(head.serial) { $0.isDiscarding ? nil : $0.body.count }
    guard let held, let held else { return }
    let size = held + slice.count
    let isOverLimit = size > settings.maxBody
    guard isOverLimit || assemblyBytes + slice.count > settings.maxAssembly else {
      assemblyBytes += slice.count
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
    inbound.remove(head.serial)
    try discard(head)
    refuse(head.serial, isOverLimit ? .tooLarge : .overloaded)
  }

  /// Remembers that the other fragments of a refused request are to be read and forgotten.
  ///
  /// Who is refused stops and cancels; who goes on to begin refused messages wants the memory.
  private mutating func discard(_ head: FrameHead) throws(Violation) {
    _ = removeAssembly(head.serial)
    guard discarding < max(16, settings.maxInFlight) else {
      throw Violation(.lengthOverLimit, head, value: UInt64(discarding))
    }
    discarding += 1
    assemblies.insert(
      Assembly(tag: head.tag, flags: head.flags, isDiscarding: true), for: head.serial)
  }

  private mutating func removeAssembly(_ serial: UInt32) -> Assembly? {
    guard let assembly = assemblies.remove(serial) else { return nil }
    assemblyBytes -= assembly.body.count
    if assembly.isDiscarding { discarding -= 1 }
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
}
