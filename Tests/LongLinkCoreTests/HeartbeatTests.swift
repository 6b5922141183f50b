// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import Testing

@Suite struct HeartbeatTests {
  @Test(arguments: [Role.client, .server])
  func `a ping leaves at the end of a silent interval and not before`(role: Role) {
    let side = beating(role)
    #expect(side.connection.deadline <= .ms(1000))
    side.pass(to: .start + 999_999_999)
    #expect(side.takeKinds() == [])
    side.pass(to: .ms(1000))
    #expect(side.takeKinds() == [.ping])
  }

  @Test(arguments: [Role.client, .server])
  func `death is found at interval and timeout and not before`(role: Role) {
    let side = beating(role)
    side.pass(to: .start + 1_399_999_999)
    #expect(side.connection.isOpen == true)
    side.pass(to: .ms(1400))
    #expect(side.takeEvents() == [.abandon(.heartbeatLost), .close(.heartbeatLost)])
    #expect(side.connection.deadline == .distantFuture)
  }

  @Test(arguments: [Role.client, .server])
  func `any byte that is read is a sign of life`(role: Role) {
    let side = beating(role) { $0.frameTimeout = 300_000_000_000 }
    let bytes = RawFrame(wire: 0x30, body: [UInt8](repeating: 1, count: 20)).bytes
    var now: Int64 = 0
    for byte in bytes {
      now += 1399
      side.pass(to: .ms(now))
      side.receive([byte])
    }
    #expect(side.connection.isOpen == true)
    #expect(side.takeKinds().count == bytes.count)
    // The suspicion that a byte has ended leaves nothing behind: the next silence counts anew.
    side.pass(to: .ms(now + 999))
    #expect(side.takeKinds() == [])
    side.pass(to: .ms(now + 1000))
    #expect(side.takeKinds() == [.ping])
    side.pass(to: .ms(now + 1399))
    #expect(side.connection.isOpen == true)
    side.pass(to: .ms(now + 1400))
    #expect(side.connection.isClosed == true)
  }

  @Test func `an empty read is no sign of life`() {
    let side = beating(.client)
    side.pass(to: .ms(1200))
    side.receive([])
    side.pass(to: .ms(1400))
    #expect(side.connection.isClosed == true)
  }

  @Test(arguments: [Role.client, .server])
  func `bytes that are written are no sign of life`(role: Role) {
    let side = beating(role)
    for time in stride(from: Int64(10), to: 1400, by: 10) {
      side.pass(to: .ms(time))
      side.push(1, [1])
      side.flush()
    }
    #expect(side.connection.isOpen == true)
    side.pass(to: .ms(1400))
    #expect(side.takeEvents() == [.abandon(.heartbeatLost), .close(.heartbeatLost)])
  }

  @Test func `a timer that comes late still gives the peer its timeout`() {
    let side = beating(.client)
    side.elapse(to: .ms(5000))
    #expect(side.takeKinds() == [.ping])
    side.pass(to: .ms(5399))
    #expect(side.connection.isOpen == true)
    side.pass(to: .ms(5400))
    #expect(side.connection.isClosed == true)
  }

  @Test func `after a pause of the process a peer whose bytes wait is not declared dead`() {
    let side = beating(.client)
    side.pass(to: .ms(1100))
    // The driver reads before it lets time pass.
    side.now = .ms(9000)
    side.receive(RawFrame(wire: 0x30))
    side.elapse(to: .ms(9000))
    #expect(side.connection.isOpen == true)
    side.pass(to: .ms(9999))
    #expect(side.takeKinds() == [.ping])
    #expect(side.connection.isOpen == true)
  }

  @Test func `the first data after a long silence goes behind a ping`() {
    let side = beating(.client)
    side.now = .ms(3000)
    side.request(50)
    side.request(51)
    #expect(side.takeKinds() == [.ping, .request, .request])
    side.pass(to: .ms(3400))
    #expect(side.connection.isClosed == true)
  }

  @Test func `a timeout longer than the interval is respected`() {
    let side = Side(ConnectionSettings(.server))
    // 200 and 1,000 milliseconds.
    side.receive(RawFrame(.hello, serial: 3, body: [0x28, 0xC8, 0x01, 0x30, 0xE8, 0x07]))
    _ = side.takeFrames()
    side.pass(to: .ms(1199))
    #expect(side.connection.isOpen == true)
    #expect(side.takeKinds() == [.ping])
    side.pass(to: .ms(1200))
    #expect(side.connection.isClosed == true)
  }

  @Test func `a server that has suspended reading detects a dead peer by what it writes`() {
    let side = opened(.server) {
      $0.encodeLimit = 10_000
      $0.writingTimeout = 5_000_000_000
    }
    side.isStalled = true
    side.push(1, [UInt8](repeating: 1, count: 20_000))
    side.flush()
    #expect(side.connection.holdsReading == true)
    side.pass(to: .ms(4999))
    #expect(side.connection.isOpen == true)
    side.pass(to: .ms(5000))
    #expect(side.takeEvents() == [.abandon(.stalledPeer), .close(.stalledPeer)])
  }

  @Test(arguments: [Role.client, .server], [false, true])
  func `what waits is judged by the shorter heartbeat of both sides`(role: Role, isShort: Bool) {
    // This side's own is 40 seconds, the peer's is 6.
    let side = Side(ConnectionSettings(role) { $0.isShort = isShort })
    let body: [UInt8] = [0x10, 3, 0x28, 0x88, 0x27, 0x30, 0xE8, 0x07]
    side.receive(RawFrame(role == .client ? .welcome : .hello, serial: 3, body: body))
    #expect(side.connection.agreement.heartbeatInterval == 5_000_000_000)
    #expect(side.connection.agreement.heartbeatTimeout == 1_000_000_000)
    _ = side.takeFrames()
    side.isStalled = true
    if role == .client {
      side.request(50, [UInt8](repeating: 1, count: 20_000))
    } else {
      side.receive(RawFrame(.request, tag: 1, serial: 50))
      side.respond(50, [UInt8](repeating: 1, count: 20_000))
    }
    side.flush()
    _ = side.takeEvents()
    // The peer sends, but takes nothing.
    var time: Int64 = 0
    while side.connection.isOpen, time < 50_000 {
      time += 100
      side.now = .ms(time)
      if !isShort { side.receive(RawFrame(wire: 0x30)) }
      side.pass(to: .ms(time))
    }
    #expect(side.takeEvents().last == .close(.stalledPeer))
    #expect(time == (isShort ? 40_000 : 6_000))
  }

  @Test func `reading again gives the peer a whole interval`() {
    let side = opened(.server) {
      $0.encodeLimit = 10_000
      $0.heartbeatInterval = 20_000_000_000
    }
    side.isStalled = true
    side.push(1, [UInt8](repeating: 1, count: 20_000))
    side.receive(Array(RawFrame(.request, tag: 1, serial: 50, body: [1]).bytes.prefix(10)))
    side.pass(to: .ms(25_000))
    side.isStalled = false
    side.flush()
    #expect(side.connection.holdsReading == false)
    side.pass(to: .ms(44_999))
    #expect(side.connection.isOpen == true)
    _ = side.takeFrames()
    side.pass(to: .ms(45_000))
    #expect(side.takeKinds() == [.ping])
  }

  @Test func `some progress is enough for the timer of writing`() {
    let side = opened(.client) {
      $0.writingTimeout = 1_000_000_000
      $0.heartbeatInterval = 100_000_000_000
    }
    side.isStalled = true
    side.request(50, [UInt8](repeating: 1, count: 50_000))
    side.flush()
    for step in 1...20 {
      side.pass(to: .ms(Int64(step) * 999))
      side.connection.wrote(1, at: side.now)
    }
    #expect(side.connection.isOpen == true)
    side.pass(to: .ms(20 * 999 + 1000))
    #expect(side.takeEvents() == [.abandon(.stalledPeer), .close(.stalledPeer)])
  }

  @Test func `nothing written and nothing waiting is no stall`() {
    let side = opened(.client) { $0.writingTimeout = 1_000_000_000 }
    side.request(50)
    side.flush()
    side.pass(to: .ms(10_000))
    #expect(side.connection.isOpen == true)
  }

  static let agreements: [[Int]] = [
    // asked for interval and timeout, the server's own, agreed
    [30_000, 10_000, 30_000, 10_000, 30_000, 10_000],
    [30_000, 10_000, 5_000, 2_000, 5_000, 2_000],
    [60_000, 20_000, 30_000, 10_000, 30_000, 10_000],
    [1_000, 20_000, 30_000, 10_000, 1_000, 10_000],
    [1, 1, 30_000, 10_000, 200, 100],
    [500, 300, 50, 10, 200, 100],
  ]

  @Test(arguments: agreements)
  func `both use the smaller of each time, within the least`(numbers: [Int]) {
    let pair = ConnectionPair(
      client: ConnectionSettings(.client) {
        $0.heartbeatInterval = Int64(numbers[0]) * 1_000_000
        $0.heartbeatTimeout = Int64(numbers[1]) * 1_000_000
      },
      server: ConnectionSettings(.server) {
        $0.heartbeatInterval = Int64(numbers[2]) * 1_000_000
        $0.heartbeatTimeout = Int64(numbers[3]) * 1_000_000
      })
    for agreement in [pair.client.connection.agreement, pair.server.connection.agreement] {
      #expect(agreement.heartbeatInterval == Int64(numbers[4]) * 1_000_000)
      #expect(agreement.heartbeatTimeout == Int64(numbers[5]) * 1_000_000)
    }
  }

  @Test(arguments: [[], [0x28, 0xE0, 0xD4, 0x03, 0x30, 0xE0, 0xD4, 0x03]] as [[UInt8]])
  func `a welcome that asks for longer leaves the client its own bound`(fields: [UInt8]) {
    // Empty, which stands for 30 s and 10 s; and 60 s each.
    let side = Side(
      ConnectionSettings(.client) {
        $0.heartbeatInterval = 5_000_000_000
        $0.heartbeatTimeout = 2_000_000_000
      })
    side.receive(RawFrame(.welcome, serial: 3, body: fields))
    _ = side.takeFrames()
    side.pass(to: .ms(4_999))
    #expect(side.takeKinds() == [])
    side.pass(to: .ms(5_000))
    #expect(side.takeKinds() == [.ping])
    side.pass(to: .ms(7_000))
    #expect(side.connection.isClosed == true)
  }

  @Test func `two idle sides keep each other alive for a day`() {
    let pair = ConnectionPair()
    pair.pass(86_400_000)
    #expect(pair.client.connection.isOpen && pair.server.connection.isOpen)
    let pings =
      pair.client.connection.counters.pingsSent + pair.server.connection.counters.pingsSent
    #expect((2_800...5_800).contains(pings))
  }
}
