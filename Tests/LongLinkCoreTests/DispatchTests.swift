import LongLinkCore
import Testing

@Suite struct DispatchTests {
  private func create(_ dispatch: inout Dispatch, deadline: LinkInstant? = nil) -> RequestID {
    dispatch.create(deadline: deadline, notifiesCancel: true, at: .start)
  }

  @Test(arguments: [Role.client, .server])
  func `serials wrap and pass over those in use`(role: Role) {
    var dispatch = Dispatch(role: role, firstSerial: 0x7FFF_FFFE)
    let bit: UInt32 = role == .server ? 0x8000_0000 : 0
    let first = create(&dispatch)
    let second = create(&dispatch)
    let third = create(&dispatch)
    #expect(first.serial == 0x7FFF_FFFE | bit)
    #expect(second.serial == 0x7FFF_FFFF | bit)
    #expect(third.serial == 50 | bit)
    #expect(role.owns(first.serial) && role.owns(second.serial) && role.owns(third.serial))
  }

  @Test func `a serial in use is passed over after the wrap`() {
    var dispatch = Dispatch(role: .client, firstSerial: 50)
    let kept = (0..<10).map { _ in create(&dispatch) }
    var wrapped = Dispatch(role: .client, firstSerial: 0x7FFF_FFFF)
    let last = create(&wrapped)
    let again = (0..<3).map { _ in create(&wrapped) }
    #expect(last.serial == 0x7FFF_FFFF)
    #expect(again.map(\.serial) == kept.prefix(3).map(\.serial))
    #expect(wrapped.end(again[0]) != nil)
    // 50 is free again, but its turn comes only when the count has come round.
    #expect(create(&wrapped).serial == 53)
  }

  @Test func `each ends once, whatever ends it`() {
    var dispatch = Dispatch(role: .client)
    let id = create(&dispatch, deadline: .ms(10))
    dispatch.placed(id, on: 7, RequestPlacement(begin: 100, ordinal: 1))
    #expect(dispatch.answered(id.serial, on: 8) == nil, "another link's response is not its own")
    #expect(dispatch.awaits(id.serial, on: 7) && !dispatch.awaits(id.serial, on: 8))
    #expect(dispatch.answered(id.serial, on: 7) == id)
    #expect(dispatch.answered(id.serial, on: 7) == nil)
    #expect(dispatch.end(id) == nil)
    dispatch.elapsed(to: .ms(1000))
    #expect(dispatch.nextExpired() == nil)
    #expect(dispatch.count == 0 && dispatch.carriedCount == 0)
    #expect(dispatch.entry(.none) == nil && dispatch.end(.none) == nil)
  }

  @Test func `deadlines end requests wherever they are`() {
    var dispatch = Dispatch(role: .client)
    let waits = create(&dispatch, deadline: .ms(5))
    let carried = create(&dispatch, deadline: .ms(10))
    let endless = create(&dispatch)
    dispatch.wait(waits)
    dispatch.placed(carried, on: 1, .keptBack)
    #expect(dispatch.deadline! <= .ms(5))
    dispatch.elapsed(to: .ms(4))
    #expect(dispatch.nextExpired() == nil)
    dispatch.elapsed(to: .ms(10))
    #expect(dispatch.nextExpired()?.id == waits)
    #expect(dispatch.nextExpired()?.id == carried)
    #expect(dispatch.nextExpired() == nil)
    #expect(dispatch.waitingCount == 0 && dispatch.carriedCount == 0 && dispatch.count == 1)
    #expect(dispatch.nextWaiting() == nil)
    #expect(dispatch.entry(endless) != nil)
  }

  @Test func `what may have happened follows from the bytes that were written`() {
    var dispatch = Dispatch(role: .client)
    let id = create(&dispatch)
    #expect(dispatch.entry(id)!.delivery(written: .max) == .notSent)
    dispatch.placed(id, on: 1, .keptBack)
    #expect(dispatch.entry(id)!.delivery(written: .max) == .notSent)
    dispatch.began(id.serial, on: 2, at: 5, ordinal: 9)
    #expect(dispatch.entry(id)!.placement == .keptBack, "word of another link")
    dispatch.began(id.serial, on: 1, at: 100, ordinal: 3)
    #expect(dispatch.entry(id)!.delivery(written: 99) == .notSent)
    #expect(dispatch.entry(id)!.delivery(written: 100) == .notSent)
    #expect(dispatch.entry(id)!.delivery(written: 101) == .sent)
  }

  @Test func `what comes back goes in front, in its order`() {
    var dispatch = Dispatch(role: .client)
    let ids = (0..<6).map { _ in create(&dispatch) }
    for id in ids[0..<4] { dispatch.placed(id, on: 1, RequestPlacement(begin: 0, ordinal: 1)) }
    for id in ids[4...] { dispatch.wait(id) }
    #expect(dispatch.carried(by: 1).map(\.id) == Array(ids[0..<4]))
    #expect(dispatch.end(ids[2]) != nil)
    dispatch.requeue([ids[0], ids[1], ids[2], ids[3]])
    dispatch.requeue([ids[0]])
    dispatch.wait(ids[0])
    #expect(dispatch.carriedCount == 0 && dispatch.waitingCount == 5)
    #expect(dispatch.entry(ids[0])!.delivery(written: .max) == .notSent)
    #expect(dispatch.waitingRequests.map(\.id) == [ids[0], ids[1], ids[3], ids[4], ids[5]])
    var order: [RequestID] = []
    while let id = dispatch.nextWaiting() { order.append(id) }
    #expect(order == [ids[0], ids[1], ids[3], ids[4], ids[5]])
    #expect(dispatch.waitingCount == 0)
  }

  @Test func `the identity of one that has ended touches no other with its serial`() {
    var dispatch = Dispatch(role: .client, firstSerial: 0x7FFF_FFFF)
    let old = create(&dispatch)
    #expect(dispatch.end(old) != nil)
    // Another table stands in for the wrap: the same serial, given out once more.
    var wrapped = Dispatch(role: .client, firstSerial: 0x7FFF_FFFE)
    _ = create(&wrapped)
    let new = create(&wrapped)
    #expect(new.serial == old.serial && new != old)
    wrapped.wait(old)
    wrapped.placed(old, on: 1, .keptBack)
    wrapped.requeue([old])
    #expect(wrapped.end(old) == nil)
    #expect(wrapped.waitingCount == 0 && wrapped.carriedCount == 0)
  }

  @Test func `requests that end while they wait leave nothing behind`() {
    var dispatch = Dispatch(role: .client)
    let first = create(&dispatch)
    dispatch.wait(first)
    for _ in 0..<20_000 {
      let id = create(&dispatch)
      dispatch.wait(id)
      _ = dispatch.end(id)
    }
    #expect(dispatch.queueLength < 200)
    #expect(dispatch.nextWaiting() == first)
  }

  @Test func `very many come back in little time`() {
    var dispatch = Dispatch(role: .client)
    let ids = (0..<50_000).map { _ in create(&dispatch) }
    for id in ids { dispatch.placed(id, on: 1, .keptBack) }
    dispatch.requeue(ids)
    #expect(dispatch.nextWaiting() == ids.first)
    #expect(dispatch.waitingCount == ids.count - 1)
  }

  @Test(arguments: 0..<60)
  func `random operations end each request exactly once`(seed: Int) {
    var model = DispatchModel(seed: UInt64(seed))
    for _ in 0..<600 { model.step() }
    model.finish()
    #expect(model.problems == [])
  }
}

/// A table of requests beside the simplest thing that does the same.
private struct DispatchModel {
  private struct Known {
    var deadline: LinkInstant?
    var link: UInt32 = 0
    var isQueued = false
  }

  private var dispatch: Dispatch
  private var known: [RequestID: Known] = [:]
  private var queue: [RequestID] = []
  private var ended: Set<RequestID> = []
  private var dice: Seeded
  private var now = LinkInstant.start
  var problems: [String] = []

  init(seed: UInt64) {
    dice = Seeded(seed)
    let near = dice.below(2) == 0
    dispatch = Dispatch(role: .client, firstSerial: near ? 0x7FFF_FFF0 : 50)
  }

  mutating func step() {
    switch dice.below(9) {
    case 0, 1: create()
    case 2: wait()
    case 3: place()
    case 4: answer()
    case 5: cancel()
    case 6: pass(Int64(dice.below(50)))
    case 7: requeue()
    default: takeWaiting()
    }
    check()
  }

  private mutating func pick() -> RequestID? {
    let ids = known.keys.sorted { $0.number < $1.number }
    return ids.isEmpty ? nil : ids[dice.below(ids.count)]
  }

  private mutating func create() {
    let deadline = dice.below(3) == 0 ? nil : now + Int64(dice.below(300)) * 1_000_000
    let id = dispatch.create(deadline: deadline, notifiesCancel: false, at: now)
    if known.keys.contains(where: { $0.serial == id.serial }) { problems.append("serial in use") }
    known[id] = Known(deadline: deadline)
  }

  private mutating func wait() {
    guard let id = pick(), known[id]!.link == 0 else { return }
    dispatch.wait(id)
    if !known[id]!.isQueued { queue.append(id) }
    known[id]!.isQueued = true
  }

  private mutating func place() {
    guard let id = pick(), known[id]!.link == 0, !known[id]!.isQueued else { return }
    let link = UInt32(1 + dice.below(2))
    dispatch.placed(id, on: link, RequestPlacement(begin: 1, ordinal: 1))
    known[id]!.link = link
  }

  private mutating func answer() {
    guard let id = pick() else { return }
    let link = UInt32(1 + dice.below(2))
    let answered = dispatch.answered(id.serial, on: link)
    let expected = known[id]!.link == link
    if (answered == id) != expected { problems.append("answered \(id)") }
    if answered != nil { end(id) }
  }

  private mutating func cancel() {
    guard let id = pick() else { return }
    if dispatch.end(id) == nil { problems.append("\(id) is gone") }
    end(id)
    if dispatch.end(id) != nil { problems.append("\(id) ended twice") }
  }

  private mutating func pass(_ milliseconds: Int64) {
    now = now + milliseconds * 1_000_000
    dispatch.elapsed(to: now)
    let due = known.filter { $0.value.deadline.map { $0 + 1_000_000 <= now } ?? false }
    var expired: Set<RequestID> = []
    while let (id, _) = dispatch.nextExpired() {
      guard let deadline = known[id]?.deadline, deadline <= now else {
        problems.append("\(id) has expired early or twice")
        continue
      }
      expired.insert(id)
      end(id)
    }
    if !expired.isSuperset(of: due.keys) { problems.append("a deadline was missed") }
  }

  private mutating func requeue() {
    let link = UInt32(1 + dice.below(2))
    let ids = dispatch.carried(by: link).map(\.id)
    let expected = known.filter { $0.value.link == link }.keys.sorted { $0.number < $1.number }
    if ids != expected { problems.append("carried") }
    dispatch.requeue(ids)
    queue = ids + queue
    for id in ids {
      known[id]!.link = 0
      known[id]!.isQueued = true
    }
  }

  private mutating func takeWaiting() {
    let id = dispatch.nextWaiting()
    let expected = queue.isEmpty ? nil : queue.removeFirst()
    if id != expected { problems.append("\(String(describing: id)) out of turn") }
    if let id { known[id]?.isQueued = false }
  }

  private mutating func end(_ id: RequestID) {
    if !ended.insert(id).inserted { problems.append("\(id) ended twice") }
    known[id] = nil
    queue.removeAll { $0 == id }
  }

  private mutating func check() {
    if dispatch.count != known.count { problems.append("count") }
    if dispatch.waitingCount != queue.count { problems.append("waiting") }
    if dispatch.carriedCount != known.values.count(where: { $0.link != 0 }) {
      problems.append("carried count")
    }
  }

  mutating func finish() {
    while let id = pick() {
      if dispatch.end(id) == nil { problems.append("\(id) was lost") }
      end(id)
    }
    check()
    pass(100_000)
  }
}
