// SPDX-License-Identifier: Apache-2.0

import LongLinkTransport
import Testing

@testable import LongLinkTLS

/// What a TLS transport waits for below, and what it tells.
@Suite struct TLSReadinessTests {
  typealias State = TLSReadiness.State

  struct Wait: Sendable {
    var state: State
    var interest: Readiness
    var below: Readiness?
  }

  @Test(arguments: [
    Wait(state: State(phase: .connecting), interest: .read, below: .write),
    Wait(state: State(phase: .handshaking), interest: .write, below: .read),
    Wait(
      state: State(phase: .handshaking, isBlocked: true), interest: .read, below: [.read, .write]),
    Wait(state: State(phase: .open), interest: .none, below: nil),
    Wait(state: State(phase: .open), interest: .read, below: .read),
    Wait(state: State(phase: .open, isBlocked: true), interest: .none, below: .write),
    Wait(
      state: State(phase: .open, hasEndedBelow: true), interest: [.read, .write], below: .write),
    Wait(state: State(phase: .failed), interest: [.read, .write], below: nil),
    Wait(state: State(phase: .failed, isBlocked: true), interest: .read, below: .write),
    Wait(state: State(phase: .flushing), interest: .none, below: .write),
    Wait(state: State(phase: .discarding), interest: .none, below: .read),
    Wait(state: State(phase: .closed), interest: .read, below: nil),
  ])
  func `the phase and the handler decide what is waited for below`(_ this: Wait) {
    var readiness = TLSReadiness()
    let isNew = readiness.setInterest(this.interest)
    #expect(isNew == (this.interest != .none))
    let below = readiness.interestBelow(this.state)
    #expect(below == this.below)
    let again = readiness.interestBelow(this.state)
    #expect(again == nil)
  }

  struct Tale: Sendable {
    var state: State
    var interest: Readiness
    var ready: Readiness
    var isReadable = false
    var told: Readiness
  }

  @Test(arguments: [
    Tale(state: State(phase: .open), interest: [.read, .write], ready: .write, told: .write),
    Tale(state: State(phase: .open), interest: .read, ready: .write, told: .none),
    Tale(
      state: State(phase: .open), interest: .read, ready: .none, isReadable: true, told: .read),
    // Nothing is taken while records wait.
    Tale(
      state: State(phase: .open, isBlocked: true), interest: [.read, .write],
      ready: [.read, .write], told: .read),
    Tale(state: State(phase: .failed), interest: .write, ready: .none, told: .write),
    Tale(state: State(phase: .failed), interest: .none, ready: .none, told: .read),
  ])
  func `the handler is told what it waits for, and of a failure`(_ this: Tale) {
    var readiness = TLSReadiness()
    _ = readiness.setInterest(this.interest)
    let told = readiness.told(this.ready, isReadable: this.isReadable, this.state)
    #expect(told == this.told)
  }

  @Test func `a handler that waits for nothing is told of a failure once`() {
    var readiness = TLSReadiness()
    let failed = State(phase: .failed)
    func hasWork() -> Bool { readiness.hasWork(isReadable: true, hasHandler: true, failed) }
    #expect(hasWork())
    let told = [
      readiness.told(.none, isReadable: true, failed),
      readiness.told(.none, isReadable: true, failed),
    ]
    #expect(told == [.read, .none])
    #expect(!hasWork())
  }

  @Test func `the end of a turn writes what waits, and tells what can be read`() {
    var readiness = TLSReadiness()
    func hasWork(_ state: State, isReadable: Bool = false) -> Bool {
      readiness.hasWork(isReadable: isReadable, hasHandler: true, state)
    }
    #expect(hasWork(State(phase: .handshaking, hasOutput: true)))
    #expect(!hasWork(State(phase: .handshaking, hasOutput: true, isBlocked: true)))
    #expect(!hasWork(State(phase: .open), isReadable: true))
    _ = readiness.setInterest(.read)
    #expect(hasWork(State(phase: .open), isReadable: true))
    #expect(!hasWork(State(phase: .flushing, hasOutput: true), isReadable: true))
  }
}
