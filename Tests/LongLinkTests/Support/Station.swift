// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkTesting

@testable import LongLinkDriver
@testable import LongLinkCore
@testable import LongLinkTransport

/// A server's link, whose peer the test plays.
final class Station: LinkOwner {
  let budget = MemoryBudget(limit: 10_000_000)
  let stream = PipeTransport.pair().0
  let driver: StillDriver
  let link: Link
  private(set) var received = 0
  /// Whether each request is answered at once.
  var answers = true
  var answer: [UInt8] = []
  /// Gets the requests, if the station does not answer them.
  var responder: Responder?

  var inputCapacity: Int { link.core.inbox.input.capacity }
  var inputCount: Int { link.core.inbox.input.count }
  var outputCapacity: Int { link.core.outbox.bytes.capacity }
  var outputIsEmpty: Bool { link.connection.outbox.isEmpty }

  convenience init() {
    let driver = StillDriver()
    self.init(driver, EventLoop(driver: driver, name: "memory"))
  }

  init(_ driver: StillDriver, _ loop: EventLoop) {
    self.driver = driver
    final class Sharer {
      weak var link: Link?
    }
    // All runs on the test's thread.
    nonisolated(unsafe) let sharer = Sharer()
    let share = budget.makeShare(on: loop) {
    } recover: {
      unsafe sharer.link?.recover()
    }
    link = Link(
      id: 1, transport: stream, isConnected: true, settings: ConnectionSettings(role: .server),
      on: loop, log: PeerLog(Logger(label: "memory") { _ in SwiftLogNoOpLogHandler() }),
      share: share)
    unsafe sharer.link = link
    turn {
      self.link.start(for: self)
      self.stream.bring(WireFrame.ping().bytes)
    }
    _ = stream.forgetWrites()
  }

  func turn(_ body: @escaping () -> Void) {
    // The loop has no thread: it runs the closure in this call.
    nonisolated(unsafe) let body = body
    link.loop.execute { unsafe body() }
    link.loop.turn(waitingUntil: .distantPast)
  }

  /// As after a greeting that has agreed on them.
  func useFragments() {
    link.core.outbox.usesFragments = true
  }

  /// Most of a request.
  func bringUnfinished() {
    let frame = WireFrame.request(1, serial: 50, [UInt8](repeating: 7, count: 1_000_000)).bytes
    turn { self.stream.bring(Array(frame.dropLast())) }
  }

  /// A push that the stream does not take.
  func push(_ byteCount: Int = 1_000_000) {
    stream.room = 0
    turn {
      try? OutgoingPush(type: 1, body: [UInt8](repeating: 7, count: byteCount), priority: 0).send(
        on: self.link)
    }
  }

  func link(_ link: Link, received message: Arrival) {
    received += 1
    if message.kind == .request, let responder {
      responder.handle(message, on: link)
    } else if message.kind == .request, answers {
      link.respond(link.connection.id(of: message), code: .ok, answer)
    }
  }
  func link(_ link: Link, reports news: LifeNews) {
    if case .abandon(let reason) = news { responder?.abandon(link, reason) }
  }
  func link(_ link: Link, reports news: RequestNews) {}
  func link(_ link: Link, reports news: StreamNews, of serial: UInt32) {}
  func link(_ link: Link, endedWith reason: CloseReason) {}
  func linkWroteAll(_ link: Link) {}
}
