// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

/// How bytes that are still on their way affect when a peer is declared dead.
@Suite struct UnacknowledgedBytesTests {
  /// A side that suspects its peer, with this many bytes before the ping in its system.
  private func suspecting(_ ahead: Int, _ role: Role = .client) -> Side {
    let side = beating(role)
    side.push(1, [UInt8](repeating: 1, count: ahead))
    side.flush()
    side.arrived = Int(side.connection.counters.bytesSent) - ahead
    side.pass(to: .ms(1_000))
    return side
  }

  @Test(arguments: [Role.client, .server])
  func `a peer is not declared dead while bytes before the ping are still being sent`(role: Role) {
    let side = suspecting(50_000, role)
    for time in stride(from: Int64(1_100), through: 20_000, by: 100) {
      side.arrived! += 100
      side.pass(to: .ms(time))
    }
    #expect(side.connection.isOpen == true)
    #expect(side.connection.counters.pingsSent == 1)
    side.receive(RawFrame(wire: 0x30))
    side.pass(to: .ms(20_999))
    #expect(side.connection.isOpen == true)
  }

  /// A side that had not looked at its clock when it sent a request, right behind the interval.
  private func asking(_ ahead: Int) -> Side {
    let side = beating(.client)
    side.push(1, [UInt8](repeating: 1, count: ahead))
    side.flush()
    side.arrived = Int(side.connection.counters.bytesSent) - ahead
    side.now = .ms(1_000)
    side.request(50)
    side.flush()
    return side
  }

  @Test func `a ping ahead of data waits for the bytes before it as well`() {
    let side = asking(50_000)
    for time in stride(from: Int64(1_100), through: 20_000, by: 100) {
      side.arrived! += 100
      side.pass(to: .ms(time))
    }
    #expect(side.connection.isOpen == true)
    #expect(side.connection.counters.pingsSent == 1)
  }

  @Test func `a ping ahead of data waits no longer where nothing leaves`() {
    let side = asking(50_000)
    side.pass(to: .ms(1_399))
    #expect(side.connection.isOpen == true)
    side.pass(to: .ms(1_400))
    #expect(side.takeEvents().last == .close(.heartbeatLost))
  }

  @Test func `the timeout runs from the last byte that was seen to leave`() {
    let side = suspecting(50_000)
    for time in stride(from: Int64(1_100), through: 5_000, by: 100) {
      side.pass(to: .ms(time))
      side.arrived! += 100
    }
    // It is seen an eighth of the timeout later at most.
    side.pass(to: .ms(5_449))
    #expect(side.connection.isOpen == true)
    side.pass(to: .ms(5_450))
    #expect(side.takeEvents() == [.abandon(.heartbeatLost), .close(.heartbeatLost)])
  }

  @Test func `a path on which nothing is sent counts as if nothing were before the ping`() {
    let side = suspecting(50_000)
    side.pass(to: .ms(1_399))
    #expect(side.connection.isOpen == true)
    side.pass(to: .ms(1_400))
    #expect(side.connection.isClosed == true)
  }

  @Test func `once the ping has left the plain timeout runs whatever follows`() {
    let side = suspecting(1_000)
    // The peer's system takes all that comes, while nobody reads there.
    for time in stride(from: Int64(1_010), through: 1_440, by: 10) {
      side.pass(to: .ms(time))
      side.arrived = nil
      side.push(1, [UInt8](repeating: 1, count: 100))
      side.flush()
    }
    #expect(side.connection.isOpen == true)
    // The eighth of the timeout after which the bytes were seen to have left, and the timeout.
    side.pass(to: .ms(1_450))
    #expect(side.connection.isClosed == true)
  }

  @Test func `bytes that wait in this side's own queue count as well`() {
    let side = beating(.client)
    side.isStalled = true
    side.push(1, [UInt8](repeating: 1, count: 60_000))
    side.flush()
    side.pass(to: .ms(1_000))
    side.isStalled = false
    for time in stride(from: Int64(1_050), through: 3_000, by: 50) {
      side.room = side.wire.count + 500
      side.pass(to: .ms(time))
    }
    #expect(side.connection.isOpen == true)
    side.room = side.wire.count
    side.pass(to: .ms(3_399))
    #expect(side.connection.isOpen == true)
    side.pass(to: .ms(3_450))
    #expect(side.takeEvents().last == .close(.heartbeatLost))
  }

  @Test(arguments: [0, 40_000])
  func `a frozen peer behind a busy writer is found`(taken: Int) {
    let side = beating(.client)
    // Its system takes so much more, then nothing; this side goes on writing all the time.
    side.room = taken
    var time: Int64 = 0
    while side.connection.isOpen, time < 10_000 {
      time += 10
      side.pass(to: .ms(time))
      if side.connection.isOpen { side.push(1, [UInt8](repeating: 1, count: 300)) }
      side.flush()
    }
    #expect(side.takeEvents().last == .close(.heartbeatLost))
    #expect(time <= 1_400 + 50)
  }

  @Test func `what leaves after a pause of the process is progress`() {
    let side = beating(.client) { $0.writingTimeout = 1_000_000_000 }
    side.isStalled = true
    side.request(50, [UInt8](repeating: 1, count: 50_000))
    side.connection.wrote(40_000, at: side.now)
    side.arrived = Int(side.connection.counters.bytesSent) - 40_000
    side.elapse(to: .ms(60_000))
    side.receive(RawFrame(wire: 0x30))
    side.arrived! += 100
    side.pass(to: .ms(60_999))
    #expect(side.connection.isOpen == true)
    side.receive(RawFrame(wire: 0x30))
    side.pass(to: .ms(61_400))
    #expect(side.takeEvents().last == .close(.stalledPeer))
  }

  @Test func `a stream that takes nothing is no stalled peer while the system's bytes leave`() {
    let side = beating(.client) {
      $0.writingTimeout = 1_000_000_000
      $0.heartbeatInterval = 100_000_000_000
    }
    side.isStalled = true
    side.request(50, [UInt8](repeating: 1, count: 50_000))
    side.connection.wrote(40_000, at: side.now)
    side.arrived = Int(side.connection.counters.bytesSent) - 40_000
    for step in Int64(1)...50 {
      side.arrived! += 100
      side.now = .ms(step * 200)
      side.receive(RawFrame(wire: 0x30))
      side.pass(to: .ms(step * 200))
    }
    #expect(side.connection.isOpen == true)
    var time: Int64 = 10_000
    while side.connection.isOpen, time < 20_000 {
      time += 10
      side.now = .ms(time)
      side.receive(RawFrame(wire: 0x30))
      side.pass(to: .ms(time))
    }
    #expect(side.takeEvents().last == .close(.stalledPeer))
    #expect(time <= 11_250)
  }
}
