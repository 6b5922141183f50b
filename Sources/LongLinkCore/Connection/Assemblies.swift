// SPDX-License-Identifier: Apache-2.0

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

/// The messages that come in fragments, and what they hold. The serial tells their kind as well.
struct Assemblies: ~Copyable {
  private var table: SerialTable<Assembly>
  /// Bytes that they hold, and those of them that hold responses which this side may wait for.
  private(set) var bytes = 0
  private(set) var awaitedBytes = 0
  /// How many of them are read and forgotten.
  private(set) var discarding = 0

  init(serialMix: UInt32) {
    table = SerialTable(mix: serialMix)
  }

  var count: Int { table.count }
  @inline(__always)
  var isEmpty: Bool { table.isEmpty }
  /// Places in the table, taken or not.
  var capacity: Int { table.capacity }
  /// The serials, in ascending order.
  var serials: [UInt32] { table.keys.sorted() }

  func contains(_ serial: UInt32) -> Bool { table.contains(serial) }

  subscript(serial: UInt32) -> Assembly? { table[serial] }

  mutating func begin(_ serial: UInt32, _ assembly: Assembly) {
    if assembly.isDiscarding { discarding += 1 }
    table.insert(assembly, for: serial)
  }

  /// How many bytes of a message have come, and whether this side may wait for it; nil for one that
  /// is read and forgotten.
  func held(by serial: UInt32) -> (count: Int, isAwaited: Bool)? {
    guard let slot = table.slot(of: serial) else { return nil }
    guard !table[slot: slot].isDiscarding else { return nil }
    return (table[slot: slot].body.count, table[slot: slot].isAwaited)
  }

  /// Another fragment came.
  mutating func touch(_ serial: UInt32, at now: LinkInstant) {
    _ = table.update(serial) { $0.touched = now }
  }

  /// Adds the bytes of a fragment.
  mutating func append(_ fragment: UnsafeRawBufferPointer, to serial: UInt32) {
    let isAwaited = table.update(serial) { assembly in
      // The caller vouches for the bytes as long as this runs.
      unsafe assembly.body.append(contentsOf: fragment)
      return assembly.isAwaited
    }
    bytes += fragment.count
    if isAwaited == true { awaitedBytes += fragment.count }
  }

  mutating func remove(_ serial: UInt32) -> Assembly? {
    guard let assembly = table.remove(serial) else { return nil }
    bytes -= assembly.body.count
    if assembly.isAwaited { awaitedBytes -= assembly.body.count }
    if assembly.isDiscarding { discarding -= 1 }
    return assembly
  }

  mutating func removeAll() {
    table.removeAll()
    (bytes, awaitedBytes, discarding) = (0, 0, 0)
  }

  mutating func releaseStorage() {
    table.releaseStorage(over: 16)
  }
}
