// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCLibrary
internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

/// The driver of a loop in a simulated world.
final class SimulatedDriver: LoopDriver {
  let networkState: SharedNetwork
  /// The loop's index, in the order in which the simulation made its loops.
  let index: Int
  /// The loop of this driver, which owns it.
  unowned var loop: EventLoop!
  private var generator: SeededGenerator
  private var registrations: [SocketName: Registration] = [:]
  private var isClosed = false
  private let clock: Box<Atomic<Int64>>
  private let calendar: Box<Atomic<Int64>>
  private let mayBeReady: Box<Atomic<Bool>>
  /// The objects on the loop that can list their unfinished operations. Nil once the simulation is
  /// gone: each of these entries holds the loop.
  private let residents = Mutex<[LoopBound<Resident>]?>([])
  /// Whether the loop's process has crashed, so that the loop has no contact with the world.
  private let isCut = Atomic(false)

  private struct Resident {
    weak var resident: (any LoopResident)?
  }

  private struct Registration {
    var handler: any TransportHandler
    var token: UInt64
  }

  init(networkState: SharedNetwork, machine: Int, index: Int, generator: SeededGenerator) {
    self.networkState = networkState
    (clock, calendar, mayBeReady) = networkState { networkState in
      let record = NetworkState.LoopRecord(machine: machine)
      networkState.loops.append(record)
      networkState.record(.loopMade, value: index, machine: machine)
      let place = networkState.machines[machine]
      return (place.clock, place.calendar, record.ready.mayBeAny)
    }
    self.index = index
    self.generator = generator
  }

  var now: LinkInstant { networkState.now + lead }

  var unixNanoseconds: Int64 {
    // Until the year 2255: later dates have no number.
    let seconds = min(networkState { $0.calendarOrigin }, 9_000_000_000)
    return seconds * 1_000_000_000 + now.nanoseconds + calendar.value.load(ordering: .acquiring)
  }

  /// How far the loop's clock is ahead of the world's, in nanoseconds.
  var lead: Int64 { clock.value.load(ordering: .acquiring) }

  /// Whether there is readiness to deliver on this loop.
  var hasReady: Bool {
    mayBeReady.value.load(ordering: .relaxed) && networkState { $0.hasReady(index) }
  }

  /// Whether the loop currently gets no turns.
  var isFrozen: Bool { networkState { $0.isFrozen(index) } }

  /// When the loop's earliest timer is due, in the world's time; nil without a timer.
  var deadline: LinkInstant? { loop.nextDeadline.map { $0 + -lead } }

  /// Whether the loop's process has crashed.
  var isCutOff: Bool { isCut.load(ordering: .acquiring) }

  func hosts(_ resident: any LoopResident) {
    let bound = LoopBound(Resident(resident: resident), on: loop!)
    let isCurrent = loop.isCurrent
    residents.withLock { kept in
      guard var residents = kept.take() else { return }
      // Some residents are gone, such as ended connections.
      if isCurrent, residents.count.nonzeroBitCount == 1 {
        residents.removeAll { $0.value.resident == nil }
      }
      residents.append(bound)
      kept = residents
    }
  }

  /// The unfinished operations of the loop's residents, a text each. Call it on the loop.
  var unfinished: [String] {
    residents.withLock { $0 ?? [] }.flatMap { $0.value.resident?.unfinished ?? [] }
  }

  func forgetResidents() {
    residents.withLock { $0 = nil }
  }

  /// Makes the loop a part of a ghost: it has no contact with the world, and no pause freezes it.
  func cutOff() {
    isCut.store(true, ordering: .releasing)
    networkState { $0.loops[index].isGhost = true }
  }

  /// Delivers readiness. It never waits: the simulation advances time between turns.
  func wait(until deadline: LinkInstant?) {
    for name in networkState({ $0.loops[index].ready.takeAll() }) {
      // An earlier handler may have closed this socket or cleared its interest.
      let readiness = networkState { $0.deliverable(name) }
      guard !readiness.isEmpty, let registration = registrations[name] else { continue }
      registration.handler.transportReady(readiness, token: registration.token)
      // Readiness is level-triggered, so the socket may still be ready.
      networkState { $0.mark(name) }
    }
  }

  /// Does nothing: the simulation looks for work after each turn.
  func wake() {}

  func letOthersRun() -> Bool { false }

  var preemptions: Int? { 0 }

  func nextRandom() -> UInt64 {
    generator.next()
  }

  func connect(
    to address: SocketAddress,
    options: SocketOptions
  ) throws(SocketError) -> any Transport {
    do throws(SimulatedErrno) {
      guard !isClosed else { throw SimulatedErrno(ESHUTDOWN) }
      guard !isCutOff else { throw SimulatedErrno(ENETDOWN) }
      let link = try networkState { (networkState) throws(SimulatedErrno) in
        try networkState.connect(from: index, to: address, userTimeout: options.userTimeout)
      }
      return SimulatedTransport(EndName(link: link, side: .initiator), driver: self, loop: loop)
    } catch {
      throw SocketError(operation: "connect", errno: error.code, address: address)
    }
  }

  func listen(
    on address: SocketAddress,
    options: SocketOptions
  ) throws(SocketError) -> any TransportListener {
    do throws(SimulatedErrno) {
      guard !isClosed else { throw SimulatedErrno(ESHUTDOWN) }
      guard !isCutOff else { throw SimulatedErrno(ENETDOWN) }
      let listener = try networkState { (networkState) throws(SimulatedErrno) in
        try networkState.listen(on: index, at: address, backlog: Int(options.backlog))
      }
      return SimulatedListener(listener, driver: self, loop: loop)
    } catch {
      throw SocketError(operation: "listen", errno: error.code, address: address)
    }
  }

  func resolve(
    host: String,
    port: UInt16,
    for owner: LookUpOwner,
    completion: @escaping @Sendable (Result<[SocketAddress], ResolveError>) -> Void
  ) {
    let deliver = { @Sendable [loop = loop!] (result: Result<[SocketAddress], ResolveError>) in
      loop.execute { completion(result) }
    }
    if let address = SocketAddress(literal: host, port: port) {
      return deliver(.success([address]))
    }
    networkState { $0.lookUp(host, port: port, deliver) }
  }

  /// Does nothing: a simulated look-up occupies no resource that others need.
  func withdrawLookUps(of owner: LookUpOwner) {}

  func close() {
    isClosed = true
    registrations = [:]
  }

  func register(_ name: SocketName, _ handler: any TransportHandler, token: UInt64) {
    registrations[name] = Registration(handler: handler, token: token)
  }

  func unregister(_ name: SocketName) {
    registrations[name] = nil
  }
}
