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
  /// The store's name with this number, and the client's space under that name.
  private let known: Mutex<(number: Int, place: OnceTable.NamedSpace)>

  init(_ scope: OnceScope, of table: OnceTable) {
    self.scope = scope
    self.table = table
    let number = table.nameNumber.load(ordering: .acquiring)
    known = Mutex((number, table.space(of: scope)))
  }

  /// The store's name and the space now.
  private var named: OnceTable.NamedSpace {
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

  func find(_ question: OnceQuestion, payload: RawSpan) -> OnceStep {
    let now = question.loop.driver.now
    let named = named
    guard question.space == named.space, question.time <= UInt64(Int64.max / 4) else {
      return .reply(table.wrongTerms(of: self, at: now))
    }
    // The store is asked under the name that the space stands for: another loop may have learned a
    // newer one meanwhile.
    let run = Run(question, table.hasher.hash(payload), of: self, in: named.name, at: now)
    if question.isOverloaded { return findKnown(run, at: now) }
    if let other = table.add(run) { return step(to: other, run) }
    guard table.detached.load(ordering: .relaxed) < table.maxDetached else {
      return .reply(run.refused(OnceTable.overloaded))
    }
    guard let memory = table.memory else { return .ask(run) }
    let finding = memory.beginNow(run.attempt)
    switch finding {
    case .run(let number):
      run.runs(number)
      return .run(run)
    case .running:
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

  /// The same while the server is overloaded: only what is known here is answered.
  private func findKnown(_ run: Run, at now: LinkInstant) -> OnceStep {
    if let other = table.run(at: run.place) {
      // One more that waits would be one too many.
      let step = step(to: other, run)
      if case .wait = step { return .reply(other.reply ?? OnceTable.overloaded) }
      return step
    }
    let finding = table.memory?.find(run.attempt)
    let reply = finding.flatMap { table.reply(to: $0, of: self, at: now) }
    return .reply(reply ?? OnceTable.overloaded)
  }
}
