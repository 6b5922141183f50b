// SPDX-License-Identifier: Apache-2.0

/// The records of a `MemoryOnceStore`.
///
/// They lie in pieces of a fixed size, so that the store grows without a copy, and are found by an
/// open table of their numbers. Two lists have them in the order of their expiries: the time of a
/// client is usually behind, so that the expiry is that of the arrival and the list needs no
/// sorting. Those whose time is ahead are in a list of their own, where one that stays for long may
/// keep expired ones behind it from being removed; they keep nobody else's.
struct OnceRecords: ~Copyable {
  static let none = UInt32.max
  private static let pieceSize = 512
  /// The most expired records of one list that one begin removes.
  private static let mostRemoved = 32
  /// The same for a begin or an answer that finds no room.
  private static let mostRemovedForRoom = 512
  /// Removes expired records at each begin of so many: together they cost fewer waits for memory.
  private static let pauseOfRemovals = 8

  /// A list of records, the one that expires first at its head.
  private struct List {
    var first = OnceRecords.none
    var last = OnceRecords.none
  }

  private let most: OnceRoom
  private var used = OnceRoom()
  private var scopes = OnceScopes()
  private var pieces: [ContiguousArray<OnceRecord>] = []
  private var firstFree = OnceRecords.none
  /// The records by their hashes.
  private var table = [Entry](repeating: .none, count: 1_024)
  /// Those whose client's time was not ahead, and the others.
  private var onTime = List()
  private var begins = 0
  /// The time of the last begin.
  private var latest: Int64 = 0
  private var ahead = List()

  init(most: OnceRoom) {
    self.most = most
  }

  var count: Int { used.records }
  var byteCount: Int { used.bytes }

  // MARK: What the store does

  /// What it has found; of a record that begins, also its number here, for `complete`.
  mutating func begin(
    _ begin: OnceBegin, at place: borrowing OncePlace, _ now: Int64
  ) -> (OnceFinding, UInt32) {
    begins &+= 1
    latest = now
    if begins % Self.pauseOfRemovals == 0 { removeExpired(at: now) }
    if let index = index(of: place) {
      if !isOver(self[index], at: now) { return (self.begin(begin, of: index, now), index) }
      remove(index)
    }
    if begin.isOutOfTime(at: now) { return (.outOfTime, Self.none) }
    var room = room(for: place)
    if room == nil {
      // Expired ones may still be there.
      removeExpired(at: now, most: Self.mostRemovedForRoom)
      room = self.room(for: place)
    }
    guard let room else { return (.full, Self.none) }
    return (.run(number: 1), insert(begin, place, room, at: now))
  }

  func find(_ begin: OnceBegin, at place: OncePlace, _ now: Int64) -> OnceFinding? {
    guard let index = index(of: place), !isOver(self[index], at: now) else { return nil }
    let finding = self[index].finding(of: begin)
    return finding == .unknown && begin.runsAgain ? nil : finding
  }

  /// Ends the record with this number here, which `begin` has said or `index(of:)` has found.
  mutating func complete(
    _ number: Int64, at index: UInt32, with answer: OnceAnswer?
  ) -> Bool {
    guard isOpen(number, at: index) else { return false }
    guard let answer else {
      self[index].state = .notKept
      return true
    }
    let size = OnceRoom(records: 0, bytes: OnceRecord.arrayBytes(answer.body.count))
    let scope = self[index].scope
    let isAnonymous = scopes.isAnonymous(scope)
    if !hasRoom(for: size, of: scope, isAnonymous: isAnonymous) {
      removeExpired(at: latest, most: Self.mostRemovedForRoom)
      // One of unknown end may have been among them.
      guard isOpen(number, at: index) else { return false }
    }
    guard hasRoom(for: size, of: scope, isAnonymous: isAnonymous) else {
      self[index].state = .notKept
      return true
    }
    add(size, to: scope)
    self[index].answer = Self.trimmed(answer.body)
    self[index].code = answer.code.rawValue
    self[index].state = .answered
    return true
  }

  /// The bytes in an array of their size. Else a record would keep memory that does not count, such
  /// as that of a request's metadata if a handler returns the body.
  private static func trimmed(_ bytes: [UInt8]) -> [UInt8] {
    guard bytes.capacity > bytes.count + 64 else { return bytes }
    return unsafe bytes.withUnsafeBytes { unsafe [UInt8]($0) }
  }

  mutating func abandon(_ number: Int64, at index: UInt32) -> Bool {
    guard isOpen(number, at: index) else { return false }
    remove(index)
    return true
  }

  mutating func lose(_ number: Int64, at index: UInt32) {
    if isOpen(number, at: index) { self[index].state = .unknown }
  }

  // MARK: States

  /// Whether the record there bears the number of a begin, which no other has, and has not ended.
  private func isOpen(_ number: Int64, at index: UInt32) -> Bool {
    guard index != Self.none, self[index].number == number else { return false }
    let state = self[index].state
    return state == .running || state == .unknown
  }

  private func isOver(_ record: borrowing OnceRecord, at now: Int64) -> Bool {
    record.expiry <= now && record.state != .running
  }

  /// Begins at a record that is there.
  private mutating func begin(
    _ begin: OnceBegin, of index: UInt32, _ now: Int64
  ) -> OnceFinding {
    let finding = self[index].finding(of: begin)
    guard finding == .unknown, begin.runsAgain else { return finding }
    unlink(index)
    self[index].begins(begin, at: now)
    self[index].runs = min(self[index].runs, .max - 1) + 1
    link(index)
    return .run(number: Int(self[index].runs))
  }

  // MARK: Room

  /// Whether there is room for more of a scope; nil stands for one that has no records.
  private func hasRoom(for size: OnceRoom, of scope: UInt32?, isAnonymous: Bool) -> Bool {
    used.has(size, within: most)
      && scopes.share(of: scope, isAnonymous: isAnonymous).has(size, within: most.quarter)
  }

  /// What a new record takes, and the number of its scope, if there is room for it; nil for a scope
  /// that has no records.
  private func room(for place: borrowing OncePlace) -> (size: OnceRoom, scope: UInt32?)? {
    let scope = scopes.number(of: place.scope)
    var size = OnceRoom(records: 1, bytes: OnceRecord.bytes(of: place.key))
    if scope == nil { size.bytes += OnceScopes.bytes(of: place.scope.bytes) }
    let isAnonymous = place.scope.isAnonymous
    return hasRoom(for: size, of: scope, isAnonymous: isAnonymous) ? (size, scope) : nil
  }

  private mutating func add(_ size: OnceRoom, to scope: UInt32) {
    used += size
    scopes.add(size, to: scope)
  }

  // MARK: Records

  private subscript(index: UInt32) -> OnceRecord {
    _read { yield pieces[Int(index) / Self.pieceSize][Int(index) % Self.pieceSize] }
    _modify { yield &pieces[Int(index) / Self.pieceSize][Int(index) % Self.pieceSize] }
  }

  private mutating func insert(
    _ begin: OnceBegin, _ place: borrowing OncePlace, _ room: (size: OnceRoom, scope: UInt32?),
    at now: Int64
  ) -> UInt32 {
    if firstFree == Self.none { addPiece() }
    let index = firstFree
    let scope = room.scope ?? scopes.add(place.scope)
    firstFree = self[index].next
    self[index].begins(begin, place, of: scope, at: now)
    link(index)
    add(room.size, to: scope)
    if used.records * 2 > table.count { growTable() }
    put(Entry(hash: place.hash, index: index))
    return index
  }

  private mutating func addPiece() {
    let first = UInt32(pieces.count * Self.pieceSize)
    var piece = ContiguousArray(repeating: OnceRecord(), count: Self.pieceSize)
    for index in piece.indices.dropLast() { piece[index].next = first + UInt32(index) + 1 }
    pieces.append(piece)
    firstFree = first
  }

  private mutating func remove(_ index: UInt32) {
    used -= scopes.remove(
      OnceRoom(records: 1, bytes: self[index].byteCount), from: self[index].scope)
    unlink(index)
    takeOut(index)
    self[index].ends(before: firstFree)
    firstFree = index
  }

  // MARK: Expiry

  private mutating func removeExpired(at now: Int64, most: Int = OnceRecords.mostRemoved) {
    removeExpired(of: onTime.first, at: now, most)
    removeExpired(of: ahead.first, at: now, most)
  }

  /// Removes expired records from the head of a list. One that still runs goes to its tail.
  private mutating func removeExpired(of first: UInt32, at now: Int64, _ most: Int) {
    var index = first
    touchExpired(of: first, at: now)
    for _ in 0..<most {
      guard index != Self.none, self[index].expiry <= now else { return }
      let next = self[index].next
      if self[index].state == .running {
        unlink(index)
        link(index)
      } else {
        remove(index)
      }
      index = next
    }
  }

  /// Reads the places in the table of the records that are to be removed. They lie far apart in
  /// memory: read one after the other, all of them together take hardly longer than one.
  private func touchExpired(of first: UInt32, at now: Int64) {
    var index = first
    var sum: UInt32 = 0
    for _ in 0..<Self.mostRemoved {
      guard index != Self.none, self[index].expiry <= now else { break }
      sum &+= table[Int(self[index].hash) & (table.count - 1)].hash
      index = self[index].next
    }
    withExtendedLifetime(sum) {}
  }

  private mutating func link(_ index: UInt32) {
    let last = self[index].isAhead ? ahead.last : onTime.last
    self[index].previous = last
    self[index].next = Self.none
    if last != Self.none { self[last].next = index }
    change(listOf: index) { list in
      if last == Self.none { list.first = index }
      list.last = index
    }
  }

  private mutating func unlink(_ index: UInt32) {
    let (previous, next) = (self[index].previous, self[index].next)
    if previous != Self.none { self[previous].next = next }
    if next != Self.none { self[next].previous = previous }
    change(listOf: index) { list in
      if previous == Self.none { list.first = next }
      if next == Self.none { list.last = previous }
    }
  }

  private mutating func change(listOf index: UInt32, _ body: (inout List) -> Void) {
    if self[index].isAhead { body(&ahead) } else { body(&onTime) }
  }

  // MARK: The table

  /// An entry of the table: the number of a record, and its hash, so that a search reads only the
  /// record that it looks for. A search that read others would wait for memory at each.
  private struct Entry {
    static let none = Entry(hash: 0, index: OnceRecords.none)

    var hash: UInt32
    var index: UInt32

    var isNone: Bool { index == OnceRecords.none }
  }

  /// The number of the record at a place; nil if there is none.
  func index(of place: borrowing OncePlace) -> UInt32? {
    let mask = table.count - 1
    var slot = Int(place.hash) & mask
    while !table[slot].isNone {
      let index = table[slot].index
      if table[slot].hash == place.hash, place.isThat(of: self[index]),
        scopes.isNumber(self[index].scope, of: place.scope)
      {
        return index
      }
      slot = (slot + 1) & mask
    }
    return nil
  }

  private mutating func put(_ entry: Entry) {
    let mask = table.count - 1
    var slot = Int(entry.hash) & mask
    while !table[slot].isNone { slot = (slot + 1) & mask }
    table[slot] = entry
  }

  /// Takes a record out, and moves those behind it so that each is still found from its own slot.
  private mutating func takeOut(_ index: UInt32) {
    let mask = table.count - 1
    var hole = Int(self[index].hash) & mask
    while table[hole].index != index { hole = (hole + 1) & mask }
    var slot = hole
    while true {
      slot = (slot + 1) & mask
      if table[slot].isNone { break }
      let home = Int(table[slot].hash) & mask
      // It may move if its own slot is not between the hole and here.
      if (slot - home) & mask >= (slot - hole) & mask {
        table[hole] = table[slot]
        hole = slot
      }
    }
    table[hole] = .none
  }

  private mutating func growTable() {
    let old = table
    table = [Entry](repeating: .none, count: old.count * 2)
    for entry in old where !entry.isNone { put(entry) }
  }
}
