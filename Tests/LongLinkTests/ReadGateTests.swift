// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LongLinkDriver

/// Whether a link reads, how much, and why not.
@Suite struct ReadGateTests {
  struct Case: CustomTestStringConvertible, Sendable {
    var isQueued = false
    var isShort = false
    var isSmall = false
    var obstacle: ReadGate.Obstacle?
    /// What the next read may take.
    var size = ReadGate.fullRead
    var reads = 4

    var testDescription: String { "queued \(isQueued), short \(isShort), small \(isSmall)" }
  }

  @Test(arguments: [
    Case(),
    Case(isSmall: true),
    Case(isQueued: true, obstacle: .queue),
    // Why memory is short is not asked then.
    Case(isQueued: true, isShort: true, obstacle: .queue),
    Case(isShort: true, obstacle: .memory, size: ReadGate.littleRead, reads: 1),
    Case(isShort: true, isSmall: true, size: ReadGate.littleRead, reads: 1),
  ])
  func `queued handlers and memory decide whether a link reads`(_ this: Case) {
    var gate = ReadGate()
    let obstacle = gate.obstacle(
      isQueued: this.isQueued, isShort: this.isShort, isSmall: this.isSmall)
    #expect(obstacle == this.obstacle)
    #expect(gate.leavesBytes == (this.obstacle != nil))
    let allowance = gate.begin(isLate: false, isFresh: false, isScarce: false, brake: nil)
    #expect(allowance == ReadGate.Allowance(size: this.size, reads: this.reads))
    #expect(!gate.leavesBytes)
  }

  @Test func `a connection is read after 64 turns, however short memory is`() {
    var gate = ReadGate()
    for _ in 0..<2 {
      var turns = 0
      while gate.obstacle(isQueued: false, isShort: true, isSmall: false) != nil { turns += 1 }
      #expect(turns == 64)
    }
  }

  struct Amount: Sendable {
    var isLate = false
    var isFresh = false
    var isScarce = false
    var brake: Int?
    var size: Int
    var reads: Int
  }

  @Test(arguments: [
    Amount(size: 131_200, reads: 4),
    Amount(isScarce: true, size: 65_600, reads: 4),
    Amount(isLate: true, size: 4_096, reads: 1),
    Amount(isFresh: true, isScarce: true, size: 4_096, reads: 1),
    Amount(brake: 1_000_000, size: 131_200, reads: 4),
    Amount(brake: 10_000, size: 10_000, reads: 2),
    Amount(brake: 100, size: 4_096, reads: 1),
    Amount(isLate: true, brake: 10_000, size: 4_096, reads: 1),
  ])
  func `the loop, the peer, memory and the rate decide how much`(_ this: Amount) {
    var gate = ReadGate()
    let allowance = gate.begin(
      isLate: this.isLate, isFresh: this.isFresh, isScarce: this.isScarce, brake: this.brake)
    #expect(allowance == ReadGate.Allowance(size: this.size, reads: this.reads))
  }

  @Test func `reading resumes once for each time that it was held`() {
    var gate = ReadGate()
    var resumes = [gate.resumes(isHeld: false), gate.resumes(isHeld: true)]
    resumes += [gate.resumes(isHeld: true), gate.resumes(isHeld: false)]
    resumes.append(gate.resumes(isHeld: false))
    gate.hold()
    resumes.append(gate.resumes(isHeld: false))
    #expect(resumes == [false, false, false, true, false, true])
  }

  @Test func `cancelled handlers get the turns whose jobs wait, and 16 at most`() {
    var gate = ReadGate()
    let without = gate.awaitsHandlers(loopLeavesJobs: false)
    #expect(!without)
    for _ in 0..<2 {
      var turns = 0
      while gate.awaitsHandlers(loopLeavesJobs: true) { turns += 1 }
      #expect(turns == 16)
    }
  }
}
