// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkOnceStore
internal import LongLinkTransport
internal import Synchronization

/// A client on one connection: whose keys are its own.
final class Client: OnceClient {
  let table: OnceTable
  let scope: OnceScope
  private let hashedScope: HashedScope
  /// The space under the name of a store in memory, which does not change; else nil.
  private let lasting: KeySpace?
  /// The store's name with this number, and the client's space under that name.
  private let known: Mutex<(number: Int, place: OnceTable.NamedSpace)>

  init(_ scope: OnceScope, of table: OnceTable) {
    self.scope = scope
    hashedScope = HashedScope(scope)
    self.table = table
    let number = table.nameNumber.load(ordering: .acquiring)
    let named = table.space(of: scope)
    lasting = table.memory == nil ? nil : named.space
    known = Mutex((number, named))
  }

  /// The store's name and the space now.
  var named: OnceTable.NamedSpace {
    known.withLock { known in
      let number = table.nameNumber.load(ordering: .acquiring)
      if number != known.number { known = (number, table.space(of: scope)) }
      return known.place
    }
  }

  func terms(at now: LinkInstant) -> OnceTerms {
    OnceTerms(
      space: named.space, retention: UInt32(clamping: table.retention),
      time: UInt64(max(1, table.status(at: now).time)))
  }

  func count(_ outcome: OnceOutcome) { table.outcomes.count(outcome) }

  func find(_ question: OnceQuestion, payload: RawSpan) -> OnceStep {
    let now = question.loop.driver.now
    // The store is asked under the name that the space stands for: another loop may have learned a
    // newer one meanwhile.
    let named = lasting == nil ? named : nil
    let isHere = question.metadata.keySpace == lasting ?? named?.space
    guard isHere || mayBeNew(question), question.metadata.keyTime <= UInt64(Int64.max / 4),
      let key = question.metadata.key
    else { return .reply(table.wrongTerms(of: self, at: now)) }
    let hasDetachedRoom = table.detached.hasRoom(for: scope)
    // The name would have to be asked for, and a new request must not begin then.
    if !isHere, question.isOverloaded { return .reply(OnceTable.overloaded) }
    if !isHere, !hasDetachedRoom { return .reply(OnceTable.tooManyDetached) }
    let place = OncePlace(hashedScope, question.type, key)
    let begin = OnceBegin(
      number: table.nextBegin, fingerprint: table.hasher.hash(payload),
      keyTime: Int64(question.metadata.keyTime), retention: table.retention,
      runsAgain: question.route.rule.runsAgain)
    let hasRoom = !question.isOverloaded && hasDetachedRoom
    // A synchronous handler is over before its loop could ask for its run again. The few requests
    // that come meanwhile to other loops ask the store.
    if let memory = table.memory, hasRoom, question.isSynchronous {
      return self.begin(question, begin, at: place, in: memory, now)
    }
    let name = isHere ? named?.name ?? [] : nil
    let run = Run(question, begin, at: place, of: self, in: name, at: now)
    if !isHere { return .ask(run) }
    if question.isOverloaded {
      return findKnown(run, orElse: OnceTable.overloaded, mayWait: false, at: now)
    }
    if !hasRoom {
      return findKnown(run, orElse: OnceTable.tooManyDetached, mayWait: true, at: now)
    }
    if let other = table.add(run) { return step(to: other, run) }
    guard let memory = table.memory else { return .ask(run) }
    let finding = run.beginNow(in: memory)
    switch finding {
    case .run(let number):
      run.runs(number)
      return .run(run)
    case .running: return .ask(run)
    default: return .reply(run.refused(refusal(finding, by: memory, at: now)))
    }
  }

  /// Whether the space of a request may be that of a newer name, which other servers that share the
  /// store know already.
  private func mayBeNew(_ question: OnceQuestion) -> Bool {
    table.memory == nil && question.metadata.keySpace != KeySpace.none
  }

  /// Begins a request in memory whose handler is synchronous: most of these need nothing else.
  private func begin(
    _ question: OnceQuestion, _ begin: OnceBegin, at place: OncePlace, in memory: MemoryOnceStore,
    _ now: LinkInstant
  ) -> OnceStep {
    let (finding, index) = memory.beginNow(begin, at: place)
    switch finding {
    case .run(let number):
      table.outcomes.count(.run)
      return .run(
        Run(question, begin, at: place, of: self, in: [], at: now, index: index, begun: number))
    case .running:
      let run = Run(question, begin, at: place, of: self, in: [], at: now)
      if let other = table.add(run) { return step(to: other, run) }
      return .ask(run)
    default: return .reply(refusal(finding, by: memory, at: now))
    }
  }

  /// The reply to what a store in memory has found instead of a request that runs or is running.
  private func refusal(
    _ finding: OnceFinding, by memory: MemoryOnceStore, at now: LinkInstant
  ) -> OnceReply {
    if finding == .outOfTime { table.learn(memory.statusNow, askedAt: now, at: now) }
    return table.reply(to: finding, of: self, at: now)!
  }

  /// What becomes of a request whose key is known here.
  private func step(to other: Run, _ run: Run) -> OnceStep {
    guard other.begin.fingerprint == run.begin.fingerprint else {
      return .reply(OnceTable.conflict)
    }
    return .wait(other)
  }

  /// The same for a request that must not begin: only what is known here is answered. `mayWait`
  /// says whether one more may wait.
  private func findKnown(
    _ run: Run, orElse refusal: OnceReply, mayWait: Bool, at now: LinkInstant
  ) -> OnceStep {
    if let other = table.run(at: run.place) {
      let step = step(to: other, run)
      if case .wait = step, !mayWait { return .reply(other.reply ?? refusal) }
      return step
    }
    let finding = table.memory?.find(run.begin, at: run.place)
    let reply = finding.flatMap { table.reply(to: $0, of: self, at: now) }
    return .reply(reply ?? refusal)
  }
}
