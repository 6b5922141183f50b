// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkCore
import Testing

@testable import LongLinkDriver
@testable import LongLinkTransport

/// Long turns write before their end where the peer works meanwhile, and nowhere else.
struct EarlyWritingTests {
  /// Two links that have shaken hands.
  private final class Pair: LinkOwner {
    let driver = StillDriver()
    let loop: EventLoop
    let stream: PipeTransport
    private let farStream: PipeTransport
    private let link: Link
    private let farLink: Link
    private var received = 0
    private(set) var failures = 0
    private(set) var end: CloseReason?

    init() {
      let loop = EventLoop(driver: driver, name: "early")
      self.loop = loop
      (stream, farStream) = PipeTransport.pair()
      func make(_ role: Role, _ stream: PipeTransport) -> Link {
        Link(
          id: 1, transport: stream, isConnected: true, settings: ConnectionSettings(role: role),
          on: loop, log: PeerLog(Logger(label: "early") { _ in SwiftLogNoOpLogHandler() }))
      }
      link = make(.client, stream)
      farLink = make(.server, farStream)
      turn {
        self.farLink.start(for: self)
        self.link.start(for: self)
      }
      var goesOn = true
      while goesOn {
        goesOn = false
        turn { goesOn = self.stream.deliver() || self.farStream.deliver() }
      }
      _ = stream.forgetWrites()
    }

    private func turn(_ body: @escaping () -> Void) {
      // The loop has no thread: it runs the closure in this call.
      nonisolated(unsafe) let body = body
      loop.execute { unsafe body() }
      loop.turn(waitingUntil: .distantPast)
    }

    /// Pushes from within one turn; the frames of each write.
    func push(_ count: Int, of bytes: Int = 64) throws -> [Double] {
      var failure: (any Error)?
      turn {
        do {
          for _ in 0..<count {
            try OutgoingPush(type: 1, body: [UInt8](repeating: 7, count: bytes), priority: 0).send(
              on: self.link)
          }
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
      let frame = NativeLayout.headerLength + bytes
      return stream.forgetWrites().map { Double($0) / Double(frame) }
    }

    /// Has the peer push, and this side push one for each that it takes; how many it took.
    func echo(_ count: Int) throws -> Int {
      received = 0
      turn {
        for _ in 0..<count {
          try? OutgoingPush(type: 1, body: [7], priority: 0).send(on: self.farLink)
        }
      }
      turn { _ = self.stream.deliver() }
      return received
    }

    func link(_ link: Link, received message: Arrival) {
      guard link === self.link else { return }
      received += 1
      do {
        try OutgoingPush(type: 1, body: [7], priority: 0).send(on: link)
      } catch {
        failures += 1
      }
    }

    func link(_ link: Link, reports news: LifeNews) {}
    func link(_ link: Link, reports news: RequestNews) {}
    func link(_ link: Link, reports news: StreamNews, of serial: UInt32) {}
    func link(_ link: Link, endedWith reason: CloseReason) { end = reason }
    func linkWroteAll(_ link: Link) {}
  }

  @Test func `a turn of few frames writes once`() throws {
    let pair = Pair()
    for _ in 0..<8 { #expect(try pair.push(31) == [31]) }
  }

  @Test func `a long turn continues to write early if the peer responds meanwhile`() throws {
    let pair = Pair()
    pair.stream.hasUnreadBytes = true
    for _ in 0..<40 { #expect(try pair.push(100) == [32, 32, 32, 4]) }
  }

  @Test func `early writing stops if the peer does not, and is tried again later and later`() throws
  {
    let pair = Pair()
    var tried: [Int] = []
    for turn in 0..<600 {
      let writes = try pair.push(100)
      #expect(writes == [100] || writes == [32, 32, 32, 4])
      if writes.count > 1 { tried.append(turn) }
    }
    #expect(tried == [0, 2, 6, 14, 30, 62, 126, 254, 510])
  }

  @Test(arguments: [1, nil])
  func `a response does not count if the peer may have run on this side's processor`(
    preemptions: Int?
  ) throws {
    let pair = Pair()
    pair.stream.hasUnreadBytes = true
    pair.driver.preemptionsPerLook = preemptions
    #expect(try pair.push(100).count == 4)
    #expect(try pair.push(100).count == 1)
  }

  @Test func `one turn in which early writing did not help does not end it`() throws {
    let pair = Pair()
    pair.stream.hasUnreadBytes = true
    _ = try pair.push(100)
    pair.stream.hasUnreadBytes = false
    for _ in 0..<15 { #expect(try pair.push(100).count == 4) }
    // The trial, and the shortest pause.
    #expect(try pair.push(100).count == 4)
    #expect(try pair.push(100).count == 1)
    pair.stream.hasUnreadBytes = true
    for _ in 0..<40 { #expect(try pair.push(100).count == 4) }
  }

  @Test func `large frames are written before they leave the caches`() throws {
    let pair = Pair()
    pair.stream.hasUnreadBytes = true
    for _ in 0..<8 { #expect(try pair.push(8, of: 60_000) == [3, 3, 2]) }
  }

  @Test func `a stream that takes no more is left alone until the turn ends`() throws {
    let pair = Pair()
    pair.stream.hasUnreadBytes = true
    pair.stream.room = 1_000
    #expect(try pair.push(200).count == 2)
  }

  @Test func `a write that fails early ends nothing that is under way`() throws {
    let pair = Pair()
    pair.stream.failure = 32
    #expect(try pair.echo(100) == 100)
    #expect(pair.failures == 0)
    #expect(pair.stream.writes == [0], "it is not tried again")
    #expect(pair.end == .transport(32))
  }
}
