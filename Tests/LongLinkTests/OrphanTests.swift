// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLinkTesting
import Testing

@testable import LongLinkCore
@testable import LongLinkDriver
@testable import LongLinkTransport

/// Handlers whose link ends before they have returned.
@Suite struct OrphanTests {
  /// A peer with two links, whose handlers wait until they are let go.
  private final class Setup {
    let driver = StillDriver()
    let loop: EventLoop
    let stations: [Station]
    let gate = Gate<[UInt8]>()
    private(set) var timesIdle = 0
    let responder: Responder

    init(on placement: HandlerPlacement = .connectionLoop) {
      loop = EventLoop(driver: driver, name: "orphans")
      stations = [Station(driver, loop), Station(driver, loop)]
      let router = Router()
      router.set(
        1,
        .task(placement) { [gate] _ in
          let answer = await withTaskCancellationHandler {
            await gate.value
          } onCancel: {
            // One that runs on an executor which runs its tasks at once returns within the cancel.
            if case .executor = placement { gate.open([]) }
          }
          try Task.checkCancellation()
          return answer
        })
      responder = Responder(
        peer: Peer(
          id: 1, address: nil, routes: router.snapshot,
          log: PeerLog(Logger(label: "orphans") { _ in SwiftLogNoOpLogHandler() }), on: loop),
        handlers: HandlerQueue(on: loop), on: loop)
      responder.onIdle = { [unowned self] in timesIdle += 1 }
      for station in stations { station.responder = responder }
    }

    /// Requests of as many bytes arrive on a link.
    func bring(_ sizes: Int..., on index: Int) {
      let station = stations[index]
      station.turn {
        for (place, size) in sizes.enumerated() {
          let body = [UInt8](repeating: 7, count: size)
          station.stream.bring(WireFrame.request(1, serial: 50 + UInt32(place), body).bytes)
        }
      }
    }

    func end(_ index: Int) {
      stations[index].turn { self.stations[index].link.close(.closedByPeer) }
    }

    func counters(_ index: Int) -> ConnectionCounters { stations[index].link.counters }

    /// The handlers return.
    func letGo() {
      gate.open([9])
      for _ in 0..<4 { loop.turn(waitingUntil: .distantPast) }
    }
  }

  @Test func `they are cancelled with their link`() {
    let setup = Setup()
    setup.bring(100, 100, on: 0)
    #expect(setup.timesIdle == 0)
    setup.end(0)
    #expect(setup.counters(0).handlersAbandoned == 2 && setup.timesIdle == 1)
    #expect(setup.stations[0].budget.held == 200 + 2 * HeldMemory.ofRequest)
    setup.letGo()
    #expect(setup.counters(0).droppedResponses == 2 && setup.timesIdle == 1)
    #expect(setup.stations[0].budget.held == 0)
  }

  @Test func `one that returns within the end of its request is counted once`() {
    final class Eager: TaskExecutor {
      func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // The test keeps the executor for as long as its task.
        unsafe job.runSynchronously(on: asUnownedTaskExecutor())
      }
    }
    let eager = Eager()
    for interrupts in [true, false] {
      let setup = Setup(on: .executor(eager))
      setup.bring(100, on: 0)
      let station = setup.stations[0]
      if interrupts {
        station.turn { setup.responder.heard(.overLimit, of: 50, on: station.link) }
        #expect(setup.counters(0).responsesSent == 1 && station.link.connection.inbound.count == 0)
      } else {
        setup.end(0)
      }
      #expect(setup.counters(0).droppedResponses == 1 && setup.timesIdle == 1)
      #expect(station.budget.held == 0, "interrupted: \(interrupts)")
      withExtendedLifetime(eager) {}
    }
  }
}
