// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
import LongLinkTransport
import Testing

@testable import LongLinkScenarios
@testable import LongLinkTesting

/// The bounds within which dead peers have to be found, and live ones kept.
@Suite struct LinkWatchTests {
  private static let client = EndName(link: 1, side: .initiator)
  private static let server = EndName(link: 1, side: .acceptor)
  private static let ping = WireFrame(.ping, body: [UInt8](repeating: 0, count: 8))
  private static let address = SocketAddress.ipv4(10, 0, 0, 1, port: 7_000)

  /// A link between machine 1 and machine 2 that both have greeted on, at second 0.
  private func greeted() -> LinkWatch {
    var watch = LinkWatch()
    for machine in 1...2 {
      watch.watch(
        LinkWatch.Owner(
          name: "machine \(machine)",
          heartbeat: Heartbeat(interval: .seconds(10), timeout: .seconds(5)),
          handshake: .seconds(8)),
        on: machine)
    }
    watch.tell(.connecting, Self.client, 1, at: 0, address: Self.address)
    watch.write(WireFrame(.hello, serial: 3), Self.client, 1, at: 0)
    watch.tell(.bytesArrived, Self.server, 2, at: 0, value: 16)
    watch.write(WireFrame(.welcome, serial: 3), Self.server, 2, at: 0)
    watch.tell(.bytesArrived, Self.client, 1, at: 0, value: 16)
    return watch
  }

  @Test func `an end that is closed within its bound breaks nothing`() {
    var watch = greeted()
    watch.tell(.resetSent, Self.client, 1, at: 15)
    watch.tell(.closed, Self.server, 2, at: 16)
    watch.checkAll(at: LinkInstant(nanoseconds: 100_000_000_000))
    #expect(watch.broken.isEmpty)
  }

  @Test func `an end that stays open for longer is found on either side`() {
    var watch = greeted()
    watch.tell(.closed, Self.client, 1, at: 17)
    #expect(watch.broken.map(\.promise) == [.deadPeersFound])
    watch.checkAll(at: LinkInstant(nanoseconds: 17_000_000_000))
    #expect(watch.broken.count == 2)
  }

  @Test func `bytes that an end writes are no sign of life of its peer`() {
    var watch = greeted()
    for second in 1...16 {
      watch.write(WireFrame(.request, serial: 50), Self.client, 1, at: second)
    }
    watch.tell(.closed, Self.client, 1, at: 17)
    #expect(watch.broken.map(\.promise) == [.deadPeersFound])
  }

  @Test func `bytes before the ping that still leave are waited for`() {
    var watch = greeted()
    let body = [UInt8](repeating: 1, count: 60_000)
    watch.write(WireFrame(.request, serial: 50, body: body), Self.client, 1, at: 1)
    watch.write(Self.ping, Self.client, 1, at: 10)
    watch.tell(.bytesArrived, Self.server, 2, at: 14, value: 30_000)
    watch.tell(.closed, Self.client, 1, at: 19)
    #expect(watch.broken.isEmpty)
  }

  @Test func `bytes are waited for to the last one that keep the ping from being written`() {
    var watch = greeted()
    let body = [UInt8](repeating: 1, count: 60_000)
    // The peer reads nothing, so that there is never room for a ping.
    watch.write(WireFrame(.request, serial: 50, body: body), Self.client, 1, at: 1, isFull: true)
    watch.tell(.bytesArrived, Self.server, 2, at: 12, value: 55_000)
    watch.tell(.bytesArrived, Self.server, 2, at: 14, value: 5_016)
    watch.tell(.closed, Self.client, 1, at: 19)
    #expect(watch.broken.isEmpty)
  }

  /// The client has one ping of an earlier silence on the way and, from second 21 on, one of this
  /// silence, which waits behind 60,016 further bytes. They arrive until second 25.
  private func slow() -> LinkWatch {
    var watch = greeted()
    let request = WireFrame(.request, serial: 50, body: [UInt8](repeating: 1, count: 60_000))
    watch.write(request, Self.client, 1, at: 1, isFull: true)
    // Its first ping is queued at second 10. This ends the silence, though the ping still waits.
    watch.tell(.bytesArrived, Self.client, 1, at: 11, value: 16)
    watch.tell(.bytesArrived, Self.server, 2, at: 12, value: 60_016)
    watch.write(Self.ping, Self.client, 1, at: 12, isFull: true)
    watch.tell(.bytesArrived, Self.server, 2, at: 20, value: 24)
    watch.write(request, Self.client, 1, at: 20, isFull: true)
    return watch
  }

  @Test(arguments: [31, 33])
  func `bytes before the ping of this silence are waited for, not those before an earlier one`(
    _ second: Int
  ) {
    var watch = slow()
    watch.tell(.bytesArrived, Self.server, 2, at: 24, value: 30_000)
    watch.write(Self.ping, Self.client, 1, at: 24)
    watch.tell(.bytesArrived, Self.server, 2, at: 25, value: 30_016)
    // The timeout is 5 s, and the client sees an eighth of it later what has arrived.
    watch.tell(.closed, Self.client, 1, at: second)
    #expect(watch.broken.map(\.promise) == (second == 33 ? [.deadPeersFound] : []))
  }

  @Test(arguments: [30, 32])
  func `bytes are waited for while the ping of this silence waits to be written`(_ second: Int) {
    var watch = slow()
    watch.tell(.bytesArrived, Self.server, 2, at: 24, value: 30_000)
    watch.tell(.closed, Self.client, 1, at: second)
    #expect(watch.broken.map(\.promise) == (second == 32 ? [.deadPeersFound] : []))
  }

  @Test func `pings that are sent again and again gain no time`() {
    var watch = slow()
    watch.tell(.bytesArrived, Self.server, 2, at: 20, value: 60_016)
    watch.write(Self.ping, Self.client, 1, at: 21)
    watch.tell(.bytesArrived, Self.server, 2, at: 21, value: 24)
    for second in 22...28 {
      watch.write(WireFrame(.request, serial: 50), Self.client, 1, at: second)
      watch.write(Self.ping, Self.client, 1, at: second)
      watch.tell(.bytesArrived, Self.server, 2, at: second, value: 40)
    }
    watch.tell(.closed, Self.client, 1, at: 29)
    #expect(watch.broken.map(\.promise) == [.deadPeersFound])
  }

  @Test(arguments: [19, 21])
  func `bytes on the way are waited for while the link takes no more`(_ second: Int) {
    var watch = greeted()
    let body = [UInt8](repeating: 1, count: 1_000)
    watch.write(WireFrame(.request, serial: 50, body: body), Self.client, 1, at: 8)
    watch.tell(.clogged, Self.client, 1, at: 9)
    watch.tell(.bytesArrived, Self.server, 2, at: 14, value: 1_016)
    watch.tell(.closed, Self.client, 1, at: second)
    #expect(watch.broken.map(\.promise) == (second == 21 ? [.deadPeersFound] : []))
  }

  @Test(arguments: [false, true])
  func `the ping itself is waited for unless nothing was before it`(_ isAlone: Bool) {
    var watch = greeted()
    watch.write(WireFrame(.request, serial: 50), Self.client, 1, at: 9)
    if isAlone { watch.tell(.bytesArrived, Self.server, 2, at: 9, value: 16) }
    watch.write(Self.ping, Self.client, 1, at: 10)
    if !isAlone { watch.tell(.bytesArrived, Self.server, 2, at: 11, value: 16) }
    watch.tell(.bytesArrived, Self.server, 2, at: 14, value: 24)
    watch.tell(.closed, Self.client, 1, at: 19)
    #expect(watch.broken.map(\.promise) == (isAlone ? [.deadPeersFound] : []))
  }

  @Test func `bytes that arrive together with the ping are waited for`() {
    var watch = greeted()
    let body = [UInt8](repeating: 1, count: 1_000)
    watch.write(WireFrame(.request, serial: 50, body: body), Self.client, 1, at: 14)
    watch.write(Self.ping, Self.client, 1, at: 14)
    watch.write(WireFrame(.request, serial: 51, body: body), Self.client, 1, at: 14)
    watch.tell(.bytesArrived, Self.server, 2, at: 14, value: 2_056)
    watch.tell(.closed, Self.client, 1, at: 20)
    #expect(watch.broken.isEmpty)
  }

  @Test func `bytes behind the ping are not waited for`() {
    var watch = greeted()
    watch.write(Self.ping, Self.client, 1, at: 10)
    watch.tell(.bytesArrived, Self.server, 2, at: 11, value: 24)
    watch.write(WireFrame(.request, serial: 50), Self.client, 1, at: 14)
    watch.tell(.bytesArrived, Self.server, 2, at: 15, value: 16)
    watch.tell(.closed, Self.client, 1, at: 18)
    #expect(watch.broken.map(\.promise) == [.deadPeersFound])
  }

  @Test(arguments: [0, 24])
  func `an end that reads again hears of its peer only if bytes had come`(_ bytes: Int) {
    var watch = greeted()
    watch.tell(.readingStopped, Self.client, 1, at: 11)
    if bytes > 0 { watch.tell(.bytesArrived, Self.client, 1, at: 12, value: bytes) }
    watch.tell(.readingResumed, Self.client, 1, at: 14)
    watch.tell(.closed, Self.client, 1, at: 15)
    let now = LinkInstant(nanoseconds: 15_000_000_000)
    watch.tookForDead(link: 1, on: 1, at: now)
    #expect(watch.broken.map(\.promise) == (bytes > 0 ? [.livePeersKept] : []))
  }

  @Test func `a process that was frozen has its time after that`() {
    var watch = greeted()
    watch.tell(.paused, nil, 1, at: 1)
    watch.tell(.resumed, nil, 1, at: 40)
    watch.tell(.closed, Self.client, 1, at: 54)
    #expect(watch.broken.isEmpty)
    #expect(watch.pauses.count == 1)
  }

  @Test func `a clock that jumps ends no pause, and a crash does`() {
    var watch = greeted()
    watch.tell(.paused, nil, 1, at: 1)
    watch.tell(.clockMoved, nil, 1, at: 2, value: 60)
    #expect(watch.pauses.isEmpty)
    watch.checkAll(at: LinkInstant(nanoseconds: 30_000_000_000))
    #expect(
      watch.broken.map { $0.detail.prefix(9) } == ["machine 2"], "the frozen one is not judged")
    watch.tell(.processCrashed, nil, 1, at: 40)
    #expect(watch.pauses.map { $0.to - $0.from } == [39_000_000_000])
    // What runs next on the same machine is judged.
    let name = EndName(link: 2, side: .initiator)
    watch.tell(.connecting, name, 1, at: 50, address: Self.address)
    watch.tell(.closed, name, 1, at: 60)
    #expect(watch.broken.map(\.promise) == [.deadPeersFound, .deadPeersFound])
  }

  @Test func `a connect that is never answered ends with its timeout`() {
    var watch = greeted()
    let name = EndName(link: 2, side: .initiator)
    watch.tell(.connecting, name, 1, at: 20, address: Self.address)
    watch.tell(.closed, name, 1, at: 28)
    #expect(watch.broken.isEmpty)
    let late = EndName(link: 3, side: .initiator)
    watch.tell(.connecting, late, 1, at: 20, address: Self.address)
    watch.tell(.closed, late, 1, at: 30)
    #expect(watch.broken.map(\.promise) == [.deadPeersFound])
  }

  @Test func `an end that does not read the first message has that message's time`() {
    var watch = greeted()
    let client = EndName(link: 2, side: .initiator)
    let server = EndName(link: 2, side: .acceptor)
    for reads in [false, true] {
      watch.tell(.connecting, client, 1, at: 0, address: Self.address)
      if !reads { watch.tell(.readingStopped, server, 2, at: 0) }
      watch.write(WireFrame(.hello, serial: 3), client, 1, at: 0)
      watch.tell(.bytesArrived, server, 2, at: 0, value: 16)
      if reads { watch.tell(.readingStopped, server, 2, at: 0) }
      // The time for the first message is 8 s, that of the heartbeat 15 s.
      watch.tell(.closed, server, 2, at: reads ? 16 : 9)
      watch.tell(.closed, client, 1, at: 9)
    }
    #expect(watch.broken.isEmpty)
    watch.tell(.connecting, client, 1, at: 20, address: Self.address)
    watch.tell(.readingStopped, server, 2, at: 20)
    watch.write(WireFrame(.hello, serial: 3), client, 1, at: 20)
    watch.tell(.bytesArrived, server, 2, at: 20, value: 16)
    watch.tell(.closed, server, 2, at: 30)
    #expect(watch.broken.map(\.promise) == [.deadPeersFound])
  }

  @Test func `a greeting that met a frozen process is not read before it goes on`() {
    var watch = greeted()
    let client = EndName(link: 2, side: .initiator)
    let server = EndName(link: 2, side: .acceptor)
    watch.tell(.paused, nil, 2, at: 0)
    watch.tell(.connecting, client, 1, at: 0, address: Self.address)
    watch.write(WireFrame(.hello, serial: 3), client, 1, at: 0)
    watch.tell(.bytesArrived, server, 2, at: 0, value: 16)
    watch.tell(.closed, client, 1, at: 8)
    watch.tell(.readingStopped, server, 2, at: 10)
    watch.tell(.resumed, nil, 2, at: 40)
    watch.tell(.closed, server, 2, at: 50)
    #expect(watch.broken.map(\.promise) == [.deadPeersFound], "8 s, for no heartbeat runs yet")
    watch.tell(.closed, Self.server, 2, at: 55)
    #expect(watch.broken.count == 1)
  }

  @Test(arguments: [6, 8])
  func `a live peer that is taken for dead is found`(_ second: Int) {
    var watch = greeted()
    // The timeout is 5 s.
    if second == 8 { watch.tell(.bytesArrived, Self.client, 1, at: 7, value: 16) }
    watch.tell(.resetSent, Self.client, 1, at: second)
    let now = LinkInstant(nanoseconds: Int64(second) * 1_000_000_000)
    watch.tookForDead(link: 1, on: 1, at: now)
    #expect(watch.broken.map(\.promise) == (second == 8 ? [.livePeersKept] : []))
  }
}

extension LinkWatch {
  fileprivate mutating func tell(
    _ kind: Trace.Kind, _ name: EndName?, _ machine: Int, at second: Int, value: Int = 0,
    address: SocketAddress? = nil, isFull: Bool = false, bytes: [UInt8] = []
  ) {
    observed(
      Trace.Entry(
        time: LinkInstant(nanoseconds: Int64(second) * 1_000_000_000), kind: kind,
        link: name?.link ?? 0, side: name?.side ?? .initiator, value: UInt64(value),
        address: address, machine: machine, isFull: isFull),
      bytes)
  }

  fileprivate mutating func write(
    _ frame: WireFrame, _ name: EndName, _ machine: Int, at second: Int, isFull: Bool = false
  ) {
    let bytes = frame.bytes
    tell(
      .written, name, machine, at: second, value: bytes.count, isFull: isFull, bytes: bytes)
  }
}
