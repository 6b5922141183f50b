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
  let scopeHash: Int
  /// The store's name with this number, and the client's space under that name.
  private let known: Mutex<(number: Int, place: OnceTable.NamedSpace)>

  init(_ scope: OnceScope, of table: OnceTable) {
    self.scope = scope
    scopeHash = OncePlace.hash(of: scope)
    self.table = table
    let number = table.nameNumber.load(ordering: .acquiring)
    known = Mutex((number, table.space(of: scope)))
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
    let named = named
    let isHere = question.metadata.keySpace == named.space
    guard isHere || mayBeNew(question), question.metadata.keyTime <= UInt64(Int64.max / 4)
    else { return .reply(table.wrongTerms(of: self, at: now)) }
    // The store is asked under the name that the space stands for: another loop may have learned a
    // newer one meanwhile.
    let run = Run(
      question, table.hasher.hash(payload), of: self, in: isHere ? named.name : nil, at: now)
    if !isHere { return .ask(run) }
    if question.isOverloaded {
      return findKnown(run, orElse: OnceTable.overloaded, mayWait: false, at: now)
    }
    guard table.detached.hasRoom(for: scope) else {
      return findKnown(run, orElse: OnceTable.tooManyDetached, mayWait: true, at: now)
    }
    // A synchronous handler is over before its loop could ask for its run again. The few requests
    // that come meanwhile to other loops ask the store.
    if let memory = table.memory, question.isSynchronous {
      return begin(run, in: memory, at: now) { [table] in table.add(run) }
    }
    if let other = table.add(run) { return step(to: other, run) }
    guard let memory = table.memory else { return .ask(run) }
    return begin(run, in: memory, at: now) { nil }
  }

  /// Whether the space of a request may be that of a newer name, which other servers that share the
  /// store know already.
  private func mayBeNew(_ question: OnceQuestion) -> Bool {
    table.memory == nil && question.metadata.keySpace != KeySpace.none && !question.isOverloaded
      && table.detached.hasRoom(for: scope)
  }

  /// Asks a store in memory. `add` adds a run that has to ask again, unless it has been added.
  private func begin(
    _ run: Run, in memory: MemoryOnceStore, at now: LinkInstant, adding add: () -> Run?
  ) -> OnceStep {
    let finding = memory.beginNow(run.attempt, at: run.place)
    switch finding {
    case .run(let number):
      run.runs(number)
      return .run(run)
    case .running:
      if let other = add() { return step(to: other, run) }
      return .ask(run)
    case .otherName, .outOfTime:
      table.learn(memory.statusNow, askedAt: now, at: now)
      fallthrough
    default:
      return .reply(run.refused(table.reply(to: finding, of: self, at: now)!))
    }
  }

  /// What becomes of a request whose key is known here.
  private func step(to other: Run, _ run: Run) -> OnceStep {
    guard other.attempt.fingerprint == run.attempt.fingerprint else {
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
    let finding = table.memory?.find(run.attempt, at: run.place)
    let reply = finding.flatMap { table.reply(to: $0, of: self, at: now) }
    return .reply(reply ?? refusal)
  }
}
