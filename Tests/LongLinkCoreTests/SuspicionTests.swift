// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// When a peer is asked for a sign of life, and when it is declared dead.
@Suite struct SuspicionTests {
  // MARK: Missed deadlines

  @Test(arguments: [Role.client, .server])
  func `three deadlines in a row without a byte ask at once`(role: Role) {
    let side = beating(role)
    side.missDeadline(at: 100)
    side.missDeadline(at: 150)
    #expect(side.takeKinds() == [])
    side.missDeadline(at: 200)
    #expect(side.takeKinds() == [.ping])
    #expect(side.connection.counters.earlySuspicions == 1)
    side.pass(to: .ms(599))
    #expect(side.connection.isOpen == true)
    side.pass(to: .ms(600))
    #expect(side.takeEvents() == [.abandon(.heartbeatLost), .close(.heartbeatLost)])
  }

  @Test func `a byte that is read makes the count of missed deadlines begin again`() {
    let side = beating(.client)
    side.missDeadline(at: 100)
    side.missDeadline(at: 150)
    side.receive([0x30])
    side.missDeadline(at: 160)
    side.missDeadline(at: 170)
    #expect(side.takeKinds() == [])
    side.missDeadline(at: 180)
    #expect(side.takeKinds() == [.ping])
  }

  @Test func `deadlines ask no more than once a second`() {
    let side = beating(.client)
    for time in stride(from: Int64(10), through: 5_000, by: 10) {
      side.missDeadline(at: time)
      if side.takeKinds() == [.ping] { side.receive(RawFrame(wire: 0x30)) }
    }
    #expect(side.connection.isOpen == true)
    #expect((4...5).contains(side.connection.counters.earlySuspicions))
  }

  @Test func `missed deadlines can be ignored`() {
    let side = beating(.client) { $0.missedDeadlines = 0 }
    for time in Int64(1)...50 { side.missDeadline(at: time) }
    #expect(side.takeKinds() == [])
  }

  // MARK: A pause of the process

  @Test(arguments: [Role.client, .server])
  func `a check that comes far too late gives the peer its whole time again`(role: Role) {
    let side = beating(role)
    side.pass(to: .ms(1_000))
    #expect(side.takeKinds() == [.ping])
    // The process stood still: nothing of the peer's was there, but it may come in a moment.
    side.elapse(to: .ms(9_000))
    #expect(side.connection.isOpen == true)
    #expect(side.takeKinds() == [.ping])
    #expect(side.connection.counters.pauses == 1)
    side.pass(to: .ms(9_399))
    #expect(side.connection.isOpen == true)
    side.pass(to: .ms(9_400))
    #expect(side.takeEvents() == [.abandon(.heartbeatLost), .close(.heartbeatLost)])
  }

  @Test(arguments: [Role.client, .server])
  func `a peer that speaks a moment after a pause lives`(role: Role) {
    let side = beating(role)
    side.pass(to: .ms(1_000))
    side.elapse(to: .ms(9_000))
    side.now = .ms(9_399)
    side.receive(RawFrame(wire: 0x30))
    side.pass(to: .ms(10_398))
    #expect(side.connection.isOpen == true)
    #expect(side.connection.counters.suspicions == 2)
  }

  @Test func `a check that is only a little late still counts`() {
    let side = beating(.client)
    side.pass(to: .ms(1_000))
    side.elapse(to: .ms(1_600))
    #expect(side.connection.isClosed == true)
  }

  @Test func `a frame that a pause has cut off has time to be completed`() {
    let side = beating(.server) { $0.frameTimeout = 500_000_000 }
    let bytes = RawFrame(wire: 0x30, body: [1, 2, 3]).bytes
    side.receive(Array(bytes.prefix(10)))
    side.elapse(to: .ms(9_000))
    #expect(side.connection.isOpen == true)
    side.now = .ms(9_399)
    side.receive(Array(bytes.dropFirst(10)))
    side.pass(to: .ms(9_500))
    #expect(side.connection.isOpen == true)
    side.receive(Array(bytes.prefix(10)))
    side.pass(to: .ms(10_000))
    #expect(side.connection.isOpen == false)
  }

  @Test func `a greeting that a pause has cut off has time to come`() {
    let side = Side(ConnectionSettings(.client))
    side.elapse(to: .ms(60_000))
    #expect(side.connection.isClosed == false)
    side.pass(to: .ms(70_000))
    #expect(side.takeEvents().last == .close(.handshakeTimeout))
  }

  // MARK: Wake-ups

  @Test(arguments: [1_000, 60_000] as [Int64])
  func `an idle link wakes each side at most once an interval`(interval: Int64) {
    let times: (inout ConnectionSettings) -> Void = {
      $0.heartbeatInterval = interval * 1_000_000
      $0.heartbeatTimeout = 400_000_000
    }
    let pair = ConnectionPair(
      client: ConnectionSettings(.client, times), server: ConnectionSettings(.server, times))
    let end = pair.now + 100 * interval * 1_000_000
    var wakes = [0, 0]
    while min(pair.client.connection.deadline, pair.server.connection.deadline) <= end {
      pair.now = min(pair.client.connection.deadline, pair.server.connection.deadline)
      for (index, side) in [pair.client, pair.server].enumerated()
      where side.connection.deadline <= pair.now {
        wakes[index] += 1
        side.elapse(to: pair.now)
      }
      pair.client.now = pair.now
      pair.server.now = pair.now
      pair.exchange()
    }
    #expect(pair.client.connection.isOpen && pair.server.connection.isOpen)
    #expect(wakes[0] <= 100 && wakes[1] <= 100, "\(wakes)")
    #expect(
      pair.client.connection.counters.suspicions + pair.server.connection.counters.suspicions >= 99)
  }

  // MARK: The pace

  @Test func `a side may ping earlier than was agreed but never later`() {
    let side = beating(.client) { $0.pace = 300_000_000 }
    side.pass(to: .ms(299))
    #expect(side.takeKinds() == [])
    side.pass(to: .ms(300))
    #expect(side.takeKinds() == [.ping])
    side.receive(RawFrame(wire: 0x30))
    #expect(side.takeEvents().contains(.heartbeatAnswered(300_000_000)))
    side.connection.setPace(5_000_000_000)
    side.pass(to: .ms(1_299))
    #expect(side.takeKinds() == [])
    side.pass(to: .ms(1_300))
    #expect(side.takeKinds() == [.ping])
  }

  @Test func `written bytes count as traffic on the path`() {
    let side = beating(.client) { $0.pace = 500_000_000 }
    side.now = .ms(300)
    side.push(1, [1])
    side.flush()
    side.pass(to: .ms(500))
    side.receive(RawFrame(wire: 0x30))
    // It was silent for 300 ms, then for 200.
    #expect(side.takeEvents().contains(.heartbeatAnswered(300_000_000)))
    #expect(side.connection.liveness.silenceProbed == 0)
  }

  @Test func `heartbeats are reported only if that was asked for`() {
    let side = beating(.client)
    side.pass(to: .ms(1_000))
    side.receive(RawFrame(wire: 0x30))
    #expect(!side.takeEvents().contains { if case .heartbeatAnswered = $0 { true } else { false } })
  }
}

/// A connection with a heartbeat of 1,000 and 400 milliseconds.
func beating(_ role: Role, _ change: (inout ConnectionSettings) -> Void = { _ in }) -> Side {
  let side = Side(
    ConnectionSettings(role) {
      $0.heartbeatInterval = 1_000_000_000
      $0.heartbeatTimeout = 400_000_000
      change(&$0)
    })
  // 1,000 and 400 are 0x3E8 and 0x190.
  let fields: [UInt8] = [0x10, 3, 0x28, 0xE8, 0x07, 0x30, 0x90, 0x03]
  side.receive(RawFrame(role == .client ? .welcome : .hello, serial: 3, body: fields))
  _ = side.takeFrames()
  _ = side.takeEvents()
  return side
}

extension Side {
  func takeKinds() -> [FrameKind?] {
    takeFrames().map { FrameKind(wire: $0.kind) }
  }

  fileprivate func missDeadline(at milliseconds: Int64) {
    pass(to: .ms(milliseconds))
    connection.deadlineMissed(at: now, unacknowledged: unacknowledged)
    drain()
  }
}
