// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// A table of requests beside the simplest thing that does the same.
struct RequestTableModel: ~Copyable {
  private struct Known {
    var id: RequestID
    var deadline: LinkInstant?
    var priority: UInt32
    var isOrdered: Bool
    var link: UInt32 = 0
    var isWhole = true
    var isWaiting = false
    var until: LinkInstant?
    var bytes = 0
  }

  private var table: RequestTable<Void>
  /// By number, which is the order of creation.
  private var known: [UInt64: Known] = [:]
  private var ended: Set<UInt64> = []
  /// The latest ordered one that may have arrived.
  private var reached: UInt64?
  private var dice: Seeded
  private var now = LinkInstant.start
  var problems: [String] = []

  init(seed: UInt64) {
    dice = Seeded(seed)
    let near = dice.below(2) == 0
    table = RequestTable<Void>(role: .client, firstSerial: near ? 0x7FFF_FFF0 : 50)
  }

  mutating func step() {
    switch dice.below(12) {
    case 0, 1, 2: create()
    case 3: wait()
    case 4: place()
    case 5: finishSending()
    case 6: answer()
    case 7: cancel()
    case 8: pass(Int64(dice.below(50)))
    case 9: loseLink()
    case 10: refuse()
    default: takeWaiting()
    }
    check()
  }

  private mutating func pick(where matches: (Known) -> Bool = { _ in true }) -> Known? {
    let found = known.values.filter(matches).sorted { $0.id < $1.id }
    return found.isEmpty ? nil : found[dice.below(found.count)]
  }

  private mutating func create() {
    let deadline = dice.below(3) == 0 ? nil : now + Int64(dice.below(300)) * 1_000_000
    let isOrdered = dice.below(3) == 0
    let id = table.create(
      deadline: deadline, isOrdered: isOrdered, notifiesCancel: false, at: now)
    note(id)
    known[id.number] = Known(
      id: id, deadline: deadline, priority: UInt32(dice.below(3)), isOrdered: isOrdered)
  }

  private mutating func note(_ id: RequestID) {
    if known.values.contains(where: { $0.id.serial == id.serial }) {
      problems.append("serial in use")
    }
  }

  private mutating func wait() {
    guard let one = pick(where: { $0.link == 0 && !$0.isWaiting }) else { return }
    letWait(one.id)
  }

  private mutating func letWait(_ id: RequestID) {
    let one = known[id.number]!
    let bytes = dice.below(100)
    let terms = WaitTerms(
      priority: one.priority, deadline: one.deadline ?? .distantFuture, bytes: bytes)
    known[id.number]!.isWaiting = true
    known[id.number]!.bytes = bytes
    if dice.below(3) == 0 {
      let until = now + Int64(1 + dice.below(100)) * 1_000_000
      known[id.number]!.until = until
      table.wait(id, terms, until: until, at: now)
    } else {
      table.wait(id, terms)
    }
  }

  /// Whether the lane lets an ordered request go to a link.
  private func laneAdmits(_ link: UInt32) -> Bool {
    known.values.allSatisfy { !$0.isOrdered || $0.link == 0 || ($0.link == link && $0.isWhole) }
  }

  private mutating func place() {
    guard let one = pick(where: { $0.link == 0 && !$0.isWaiting }) else { return }
    let link = UInt32(1 + dice.below(2))
    let isNext = table.isNext(one.id, isOrdered: one.isOrdered, on: link)
    let laneIsFree =
      laneAdmits(link) && !known.values.contains { $0.isOrdered && $0.isWaiting }
    let expected = expectedTurn(on: link) == nil && (!one.isOrdered || laneIsFree)
    if isNext != expected { problems.append("\(one.id) may pass: \(isNext)") }
    if isNext { carry(one.id, on: link) }
  }

  private mutating func carry(_ id: RequestID, on link: UInt32) {
    let isWhole = dice.below(3) != 0
    table.placed(id, on: link, isWhole ? OutputPosition(begin: 1, ordinal: 1) : .keptBack)
    known[id.number]!.link = link
    known[id.number]!.isWhole = isWhole
  }

  private mutating func finishSending() {
    guard let one = pick(where: { $0.link != 0 && !$0.isWhole }) else { return }
    table.finished(one.id.serial, on: one.link)
    known[one.id.number]!.isWhole = true
  }

  private mutating func arrived(_ one: Known) {
    if one.isOrdered { reached = max(reached ?? 0, one.id.number) }
  }

  private mutating func answer() {
    guard let one = pick() else { return }
    let link = UInt32(1 + dice.below(2))
    let answered = table.answered(one.id.serial, on: link)
    if (answered?.number == one.id.number) != (one.link == link) {
      problems.append("answered \(one.id)")
    }
    guard answered != nil else { return }
    arrived(one)
    end(one.id)
  }

  private mutating func cancel() {
    guard let one = pick() else { return }
    if table.end(one.id) == nil { problems.append("\(one.id) is gone") }
    end(one.id)
    if table.end(one.id) != nil { problems.append("\(one.id) ended twice") }
  }

  private mutating func pass(_ milliseconds: Int64) {
    now = now + milliseconds * 1_000_000
    table.elapsed(to: now)
    let due = known.values.filter { $0.deadline.map { $0 <= now } ?? false }.map(\.id.number)
    var expired: Set<UInt64> = []
    while let (id, _) = table.nextExpired() {
      guard let deadline = known[id.number]?.deadline, deadline <= now else {
        problems.append("\(id) has expired early or twice")
        continue
      }
      expired.insert(id.number)
      end(id)
    }
    if expired != Set(due) { problems.append("a deadline was missed") }
    for (number, one) in known where one.until.map({ $0 <= now }) ?? false {
      known[number]!.until = nil
    }
  }

  /// What a link carries comes back, as far as its order is kept.
  private mutating func loseLink() {
    let link = UInt32(1 + dice.below(2))
    let ids = table.carried(by: link).map(\.id)
    let expected = known.values.filter { $0.link == link }.map(\.id).sorted()
    if ids != expected { problems.append("carried") }
    if table.carriedCount(by: link) != ids.count { problems.append("carried by a link") }
    for id in ids {
      let delivery: Delivery = dice.below(3) == 0 ? .sent : .notSent
      table.takeBack(id, delivery)
      if delivery == .sent { arrived(known[id.number]!) }
      known[id.number]!.link = 0
      known[id.number]!.isWhole = true
    }
    for id in ids { comeBack(id) }
  }

  private mutating func refuse() {
    guard let one = pick(where: { $0.link != 0 }) else { return }
    let keepsOrder = table.keepsOrder(one.id, table.entry(one.id)!)
    table.takeBack(one.id, .refused)
    known[one.id.number]!.link = 0
    known[one.id.number]!.isWhole = true
    if keepsOrder {
      let id = table.renew(one.id, deadline: one.deadline ?? .distantFuture)
      note(id)
      known[id.number]!.id = id
      if table.current(one.id) != id { problems.append("the new serial is not known") }
    }
    comeBack(known[one.id.number]!.id, keepsOrder: keepsOrder)
  }

  private mutating func comeBack(_ id: RequestID, keepsOrder: Bool? = nil) {
    let one = known[id.number]!
    let isUnpassed =
      reached.map { $0 < id.number } ?? true
      && !known.values.contains { $0.isOrdered && $0.link != 0 && $0.id.number > id.number }
    let allowed = keepsOrder ?? table.keepsOrder(id, table.entry(id)!)
    if allowed != (!one.isOrdered || isUnpassed) { problems.append("order of \(id)") }
    if allowed {
      letWait(id)
    } else {
      _ = table.end(id)
      end(id)
    }
  }

  private func expectedTurn(on link: UInt32) -> RequestID? {
    var candidates = known.values.filter { $0.isWaiting && !$0.isOrdered && $0.until == nil }
    let lane = known.values.filter { $0.isWaiting && $0.isOrdered }.min { $0.id < $1.id }
    if let lane, lane.until == nil, laneAdmits(link) { candidates.append(lane) }
    let first = candidates.min { left, right in
      if left.priority != right.priority { return left.priority > right.priority }
      let deadlines = (left.deadline ?? .distantFuture, right.deadline ?? .distantFuture)
      return deadlines.0 == deadlines.1 ? left.id < right.id : deadlines.0 < deadlines.1
    }
    return first?.id
  }

  private mutating func takeWaiting() {
    let link = UInt32(1 + dice.below(2))
    let expected = expectedTurn(on: link)
    if table.hasNext(on: link) != (expected != nil) { problems.append("has a turn") }
    let id = table.nextWaiting(on: link)
    if id != expected { problems.append("\(String(describing: id)) out of turn") }
    guard let id else { return }
    known[id.number]?.isWaiting = false
    carry(id, on: link)
  }

  private mutating func end(_ id: RequestID) {
    if !ended.insert(id.number).inserted { problems.append("\(id) ended twice") }
    known[id.number] = nil
  }

  private mutating func check() {
    if table.count != known.count { problems.append("count") }
    let waiting = known.values.filter(\.isWaiting)
    if table.waitingCount != waiting.count { problems.append("waiting") }
    if table.waitingBytes != waiting.reduce(0, { $0 + $1.bytes }) { problems.append("bytes") }
    if table.waitingRequests().map(\.id) != waiting.map(\.id).sorted() {
      problems.append("those that wait")
    }
    if table.carriedCount != known.values.count(where: { $0.link != 0 }) {
      problems.append("carried count")
    }
  }

  mutating func finish() {
    while let one = pick() {
      if table.end(one.id) == nil { problems.append("\(one.id) was lost") }
      end(one.id)
    }
    check()
    if table.deadline != nil { problems.append("a timer was left") }
    pass(100_000)
  }
}
