// SPDX-License-Identifier: Apache-2.0

/// A message whose last fragment has not arrived.
struct Assembly: Equatable, Sendable {
  let tag: UInt32
  let flags: FrameFlags
  /// Whether the message is a response to a request of this client: `maxRequestBytes` excludes it.
  let isAwaited: Bool
  var body = FragmentBuffer()
  /// Whether the message was refused: its other fragments are read and discarded.
  var isDiscarding = false
  /// When the latest fragment of the message arrived.
  var touched: LinkInstant
}

/// The incomplete messages, by serial. The serial also determines their kind.
struct Assemblies: ~Copyable {
  private var table: SerialTable<Assembly>
  /// The number of bytes of all messages, and of awaited responses alone.
  private(set) var bytes = 0
  private(set) var awaitedBytes = 0
  /// The memory of all messages, which is more than their bytes.
  private(set) var capacity = 0
  /// The number of messages that are discarded.
  private(set) var discarding = 0

  init(serialMix: UInt32) {
    table = SerialTable(mix: serialMix)
  }

  var count: Int { table.count }
  @inline(__always)
  var isEmpty: Bool { table.isEmpty }
  /// The number of slots in the table.
  var slots: Int { table.capacity }
  /// The approximate memory of all messages.
  var heldBytes: Int { capacity + count * Assemblies.overhead }
  /// The approximate memory of a message besides its bytes.
  private static let overhead = 128

  /// The heads of the messages to `role` of which no fragment has come for so long, in the order of
  /// their serials, and when the next one is due. The time does not run until `since`.
  func overdue(
    at now: LinkInstant, after timeout: Int64, since: LinkInstant, to role: Role
  ) -> (heads: [FrameHead], next: LinkInstant) {
    var heads: [FrameHead] = []
    var next = LinkInstant.distantFuture
    for serial in table.keys.sorted() where !role.owns(serial) {
      guard let assembly = table[serial], !assembly.isDiscarding else { continue }
      let due = max(assembly.touched, since) + timeout
      if due > now {
        next = min(next, due)
      } else {
        heads.append(
          FrameHead(
            serial == Wire.plainPushSerial ? .push : .request, flags: assembly.flags,
            tag: assembly.tag, serial: serial, length: 0))
      }
    }
    return (heads, next)
  }

  func contains(_ serial: UInt32) -> Bool { table.contains(serial) }

  /// Begins a message to `role` with its first fragment.
  mutating func begin(
    _ head: FrameHead, to role: Role, isDiscarding: Bool, at now: LinkInstant
  ) {
    let assembly = Assembly(
      tag: head.tag, flags: head.flags, isAwaited: head.kind == .response && role == .client,
      isDiscarding: isDiscarding, touched: now)
    if isDiscarding { discarding += 1 }
    table.insert(assembly, for: head.serial)
  }

  /// Throws if a frame cannot be another fragment of the message with its serial.
  func validate(_ head: FrameHead) throws(Violation) {
    guard head.tag == table[head.serial]?.tag, !head.flags.contains(.metadata) else {
      throw Violation(.fragmentMismatch, head)
    }
    guard head.length <= Wire.fragmentLimit else {
      throw Violation(.sizeNotAllowed, head, value: UInt64(head.length))
    }
  }

  /// The number of bytes of a message that have arrived, and whether it is an awaited response; nil
  /// for a message that is discarded.
  func held(by serial: UInt32) -> (count: Int, isAwaited: Bool)? {
    guard let slot = table.slot(of: serial) else { return nil }
    guard !table[slot: slot].isDiscarding else { return nil }
    return (table[slot: slot].body.count, table[slot: slot].isAwaited)
  }

  /// Notes the arrival of another fragment.
  mutating func touch(_ serial: UInt32, at now: LinkInstant) {
    _ = table.update(serial) { $0.touched = now }
  }

  /// Adds the bytes of a fragment. At most `limit` bytes may follow.
  mutating func append(_ fragment: UnsafeRawBufferPointer, to serial: UInt32, limit: Int) {
    let added = table.update(serial) { assembly in
      let capacity = assembly.body.capacity
      // The caller guarantees that the bytes are valid during this call.
      unsafe assembly.body.append(fragment, credit: limit)
      return (assembly.body.capacity - capacity, assembly.isAwaited)
    }
    guard let (capacity, isAwaited) = added else { return }
    self.capacity += capacity
    bytes += fragment.count
    if isAwaited { awaitedBytes += fragment.count }
  }

  mutating func remove(_ serial: UInt32) -> Assembly? {
    guard let assembly = table.remove(serial) else { return nil }
    bytes -= assembly.body.count
    capacity -= assembly.body.capacity
    if assembly.isAwaited { awaitedBytes -= assembly.body.count }
    if assembly.isDiscarding { discarding -= 1 }
    return assembly
  }

  mutating func removeAll() {
    table.removeAll()
    (bytes, awaitedBytes, capacity, discarding) = (0, 0, 0, 0)
  }

  mutating func releaseStorage() {
    table.releaseStorage(over: 16)
  }
}
