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
  /// The most expired records that one begin removes.
  private static let mostRemoved = 8

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
  private var ahead = List()

  init(most: OnceRoom) {
    self.most = most
  }

  var count: Int { used.records }
  var byteCount: Int { used.bytes }

  // MARK: What the store does

  mutating func begin(_ attempt: OnceAttempt, at place: OncePlace, _ now: Int64) -> OnceFinding {
    removeExpired(at: now)
    if let index = index(of: place) {
      if !isOver(self[index], at: now) { return begin(attempt, of: index, now) }
      remove(index)
    }
    if attempt.isOutOfTime(at: now) { return .outOfTime }
    var record = OnceRecord(attempt, place, at: now)
    let scope = scopes.number(of: place.scope)
    let size = OnceRoom(
      records: 1, bytes: record.byteCount + (scope == nil ? OnceScopes.bytes(of: place.scope) : 0))
    guard hasRoom(for: size, of: scope, isAnonymous: OnceScope.isAnonymous(place.scope)) else {
      return .full
    }
    record.scope = scope ?? scopes.add(place.scope)
    insert(record, size)
    return .run(number: 1)
  }

  func find(_ attempt: OnceAttempt, at place: OncePlace, _ now: Int64) -> OnceFinding? {
    guard let index = index(of: place), !isOver(self[index], at: now) else { return nil }
    let finding = self[index].finding(of: attempt)
    return finding == .unknown && attempt.runsAgain ? nil : finding
  }

  mutating func complete(
    _ token: OnceToken, at place: OncePlace, with answer: OnceAnswer?
  ) -> Bool {
    guard let index = open(token, at: place) else { return false }
    guard let answer else {
      self[index].state = .notKept
      return true
    }
    let size = OnceRoom(records: 0, bytes: OnceRecord.arrayBytes(answer.body.count))
    let scope = self[index].scope
    guard hasRoom(for: size, of: scope, isAnonymous: scopes.isAnonymous(scope)) else {
      self[index].state = .notKept
      return true
    }
    add(size, to: scope)
    self[index].answer = answer.body
    self[index].code = answer.code.rawValue
    self[index].state = .answered
    return true
  }

  mutating func abandon(_ token: OnceToken, at place: OncePlace) -> Bool {
    guard let index = open(token, at: place) else { return false }
    remove(index)
    return true
  }

  mutating func lose(_ token: OnceToken, at place: OncePlace) {
    if let index = open(token, at: place) { self[index].state = .unknown }
  }

  // MARK: States

  /// The record that bears a token and has not ended.
  private func open(_ token: OnceToken, at place: OncePlace) -> UInt32? {
    guard let index = index(of: place), self[index].number == token.number else { return nil }
    let state = self[index].state
    return state == .running || state == .unknown ? index : nil
  }

  private func isOver(_ record: borrowing OnceRecord, at now: Int64) -> Bool {
    record.expiry <= now && record.state != .running
  }

  /// Begins at a record that is there.
  private mutating func begin(
    _ attempt: OnceAttempt, of index: UInt32, _ now: Int64
  ) -> OnceFinding {
    let finding = self[index].finding(of: attempt)
    guard finding == .unknown, attempt.runsAgain else { return finding }
    unlink(index)
    self[index].begins(attempt, at: now)
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

  private mutating func add(_ size: OnceRoom, to scope: UInt32) {
    used += size
    scopes.add(size, to: scope)
  }

  // MARK: Records

  private subscript(index: UInt32) -> OnceRecord {
    _read { yield pieces[Int(index) / Self.pieceSize][Int(index) % Self.pieceSize] }
    _modify { yield &pieces[Int(index) / Self.pieceSize][Int(index) % Self.pieceSize] }
  }

  private mutating func insert(_ record: OnceRecord, _ size: OnceRoom) {
    if firstFree == Self.none { addPiece() }
    let index = firstFree
    firstFree = self[index].next
    self[index] = record
    link(index)
    add(size, to: record.scope)
    if used.records * 2 > table.count { growTable() }
    put(Entry(hash: record.hash, index: index))
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
    self[index] = OnceRecord()
    self[index].next = firstFree
    firstFree = index
  }

  // MARK: Expiry

  private mutating func removeExpired(at now: Int64) {
    removeExpired(of: onTime.first, at: now)
    removeExpired(of: ahead.first, at: now)
  }

  /// Removes expired records from the head of a list. One that still runs goes to its tail.
  private mutating func removeExpired(of first: UInt32, at now: Int64) {
    var index = first
    for _ in 0..<Self.mostRemoved {
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
  private func index(of place: OncePlace) -> UInt32? {
    let mask = table.count - 1
    var slot = Int(place.hash) & mask
    while !table[slot].isNone {
      let index = table[slot].index
      if table[slot].hash == place.hash, place.isThat(of: self[index]),
        scopes.bytes(of: self[index].scope) == place.scope
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
