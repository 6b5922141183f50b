// SPDX-License-Identifier: Apache-2.0

import LongLinkDialects
import LongLinkTesting
import Logging
import Testing

@testable import LongLink
@testable import LongLinkDriver
@testable import LongLinkCore
@testable import LongLinkTransport

/// The pings of an application, which wait for their pongs.
@Suite struct PingWaitersTests {
  /// Pings on links whose peers say nothing.
  private final class Pinger {
    var waiters = PingWaiters()
    var now = LinkInstant(nanoseconds: 1_000_000_000)
    let answers = Tally<String>()

    /// Sends a ping that goes by a name; nil if it was sent, and otherwise the error.
    func ping(_ name: String = "", over station: Station) -> LongLinkError? {
      var failure: LongLinkError?
      station.turn {
        do throws(LongLinkError) {
          try self.waiters.ping(over: station.link, at: self.now) { [answers = self.answers] in
            answers.add("\(name): \((try? $0.get()) ?? .zero)")
          }
        } catch {
          failure = error
        }
      }
      return failure
    }

    func answer(_ id: UInt64, on station: Station) -> Bool {
      guard let completion = waiters.take(id, on: station.link) else { return false }
      completion(.success(.milliseconds(5)))
      return true
    }
  }

  @Test func `a pong answers the ping of its link and number, once`() {
    let (here, there) = (Station(), Station())
    let pinger = Pinger()
    #expect(pinger.ping("a", over: here) == nil)
    #expect(pinger.ping("b", over: there) == nil)
    #expect(pinger.ping("c", over: here) == nil)
    // Both links count their pings from the same number.
    #expect(pinger.answer(1, on: there))
    #expect(!pinger.answer(2, on: there))
    #expect(pinger.answer(2, on: here))
    #expect(pinger.answer(1, on: here))
    #expect(!pinger.answer(1, on: here))
    #expect(pinger.answers.elements.map { $0.prefix(1) } == ["b", "c", "a"])
  }

  @Test func `a link that ends takes only its own pings along`() {
    let (here, there) = (Station(), Station())
    let pinger = Pinger()
    for name in ["a", "b"] { #expect(pinger.ping(name, over: here) == nil) }
    #expect(pinger.ping("c", over: there) == nil)
    for completion in pinger.waiters.takeAll(on: here.link) {
      completion(.failure(LongLinkError(.connectionLost, doing: "ping")))
    }
    #expect(pinger.answers.elements == ["a: \(Duration.zero)", "b: \(Duration.zero)"])
    #expect(pinger.waiters.takeAll(on: here.link).isEmpty)
    #expect(!pinger.answer(1, on: here))
    #expect(pinger.answer(1, on: there))
  }

  @Test func `too many pings within 10 s are refused before the server would object`() {
    let station = Station()
    let pinger = Pinger()
    for number in 0..<90 {
      pinger.now = LinkInstant(nanoseconds: 1_000_000_000 + Int64(number) * 100_000_000)
      #expect(pinger.ping(over: station) == nil)
    }
    // The first one was sent 9.999 s ago.
    pinger.now = LinkInstant(nanoseconds: 10_999_000_000)
    let error = pinger.ping(over: station)
    #expect(error?.code == .overloaded && error?.delivery == .notSent)
    #expect(error?.detail == "90 within 10 s")
    pinger.now = LinkInstant(nanoseconds: 11_000_000_000)
    #expect(pinger.ping(over: station) == nil)
    #expect(pinger.ping(over: station)?.code == .overloaded)
    #expect(pinger.waiters.takeAll(on: station.link).count == 91)
  }

  @Test func `a ping that the dialect does not answer is refused`() throws {
    var settings = ConnectionSettings(role: .client)
    settings.dialect = try DialectCodec(.lines(), role: .client, token: [])
    let link = Link(
      id: 1, transport: PipeTransport.pair().0, isConnected: true, settings: settings,
      on: EventLoop(driver: StillDriver(), name: "dialect"),
      log: PeerLog(Logger(label: "dialect") { _ in SwiftLogNoOpLogHandler() }))
    var waiters = PingWaiters()
    let error = #expect(throws: LongLinkError.self) {
      try waiters.ping(over: link, at: LinkInstant(nanoseconds: 0)) { _ in }
    }
    #expect(error?.code == .unsupported)
    #expect(error?.detail == "the dialect does not answer a client's pings")
    #expect(waiters.takeAll(on: link).isEmpty)
  }
}
