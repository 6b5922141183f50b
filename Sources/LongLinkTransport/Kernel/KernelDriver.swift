// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import LongLinkCLibrary
internal import LongLinkCore

/// The driver of a loop over the kernel: sockets, a poller and the monotonic clock.
final class KernelDriver: LoopDriver {
  /// The driver's loop, which owns the driver. All other owners of the driver also own the loop.
  @safe unowned(unsafe) var loop: EventLoop!
  var systemCalls = SystemCallCounts()
  private let poller: any Poller
  /// How long to poll without sleeping, in nanoseconds.
  private let busyPoll: Int64
  private let waker: Waker
  private let resolver: Resolver
  @safe @exclusivity(unchecked) private var registrations = SlotTable<Registration>()
  private var random = SystemRandom()
  /// The transport to begin with next time. Pollers report descriptors in a constant order, and the
  /// last ones get little time in a long turn.
  private var firstStream: PollKey?
  private(set) var isClosed = false

  /// A descriptor's handler and interest.
  private struct Registration {
    let descriptor: CInt
    var handler: any TransportHandler
    var token: UInt64
    var interest: Readiness
  }

  init(poller: any Poller, busyPoll: Int64 = 0, resolver: Resolver = .shared) {
    self.poller = poller
    self.busyPoll = busyPoll
    self.resolver = resolver
    waker = poller.waker
    SystemMemory.reusesFree
  }

  var now: LinkInstant {
    LinkInstant(nanoseconds: SystemCall.monotonicNanoseconds())
  }

  var unixNanoseconds: Int64 { SystemCall.unixNanoseconds() }

  func wait(until deadline: LinkInstant?) {
    guard !isClosed else { return }
    var count = busyPoll > 0 ? busyPoll(until: deadline) : 0
    // Work that was handed over meanwhile must not wait for the sleep to end.
    if count == 0 {
      systemCalls.waits += 1
      count = poller.wait(until: busyPoll > 0 && loop.hasWork ? .distantPast : deadline)
    }
    loop.eventPhaseBegan(at: now)
    guard count > 0 else { return }
    var index = 0
    if let first = firstStream.take() {
      index = (0..<count).first { poller.event(at: $0).key == first } ?? 0
    }
    for _ in 0..<count {
      let event = poller.event(at: index)
      defer {
        if firstStream == nil, loop.hasReadLittle { firstStream = event.key }
        index = index + 1 < count ? index + 1 : 0
      }
      // An earlier handler may have closed this transport or changed its interest.
      guard let registration = registrations[event.key.rawValue] else { continue }
      let readiness = event.readiness.intersection(registration.interest)
      guard !readiness.isEmpty else { continue }
      registration.handler.transportReady(readiness, token: registration.token)
    }
  }

  /// Polls without sleeping until there are events or work, or the time is up.
  private func busyPoll(until deadline: LinkInstant?) -> Int {
    let limit = min(now + busyPoll, deadline ?? .distantFuture)
    while !loop.hasWork, now < limit {
      systemCalls.waits += 1
      let count = poller.wait(until: .distantPast)
      if count > 0 { return count }
    }
    return 0
  }

  func wake() {
    waker.wake()
  }

  func letOthersRun() -> Bool {
    sched_yield() == 0
  }

  var preemptions: Int? { SystemCall.preemptions }

  func nextRandom() -> UInt64 {
    random.next()
  }

  func offload(_ work: @escaping @Sendable () -> Void) {
    KernelDriver.blockingQueue.async { work() }
  }

  /// The queue for work that blocks. The callers of `offload` bound how much of it there is at
  /// once.
  private static let blockingQueue = DispatchQueue(
    label: "longlink-blocking", attributes: .concurrent)

  func resolve(
    host: String,
    port: UInt16,
    for owner: LookUpOwner,
    completion: @escaping @Sendable (Result<[SocketAddress], ResolveError>) -> Void
  ) {
    let deliver = { @Sendable [loop = loop!] (result: Result<[SocketAddress], ResolveError>) in
      loop.execute {
        // There is no receiver any more once the loop was shut down.
        if !loop.isStopped { completion(result) }
      }
    }
    if let address = SocketAddress(literal: host, port: port) {
      deliver(.success([address]))
    } else {
      OutsideConnects.shared.tell(.host(host, port: port))
      resolver.resolve(host: host, port: port, for: owner, completion: deliver)
    }
  }

  func withdrawLookUps(of owner: LookUpOwner) { resolver.withdraw(owner) }

  /// Releases everything but the waker. Open transports close themselves when they are released.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    for registration in registrations.removeAll() {
      poller.remove(registration.descriptor)
    }
    poller.close()
  }
}

// MARK: - Registrations

extension KernelDriver {
  /// Registers a handler for a descriptor and returns the registration's key.
  func register(_ descriptor: CInt, _ handler: any TransportHandler, token: UInt64) -> PollKey {
    let registration = Registration(
      descriptor: descriptor,
      handler: handler,
      token: token,
      interest: []
    )
    return PollKey(rawValue: registrations.insert(registration))
  }

  /// Replaces the handler and token of a registration.
  func replace(_ key: PollKey, _ handler: any TransportHandler, token: UInt64) {
    registrations[key.rawValue]?.handler = handler
    registrations[key.rawValue]?.token = token
  }

  /// Changes the interest, with a system call if it differs from before.
  ///
  /// If the poller fails, the handler is still notified of readiness in the next turn, so that it
  /// finds the failure, which the transport keeps.
  func setInterest(_ key: PollKey, _ interest: Readiness) throws(Errno) {
    guard let registration = registrations[key.rawValue] else { return }
    let former = registration.interest
    guard interest != former else { return }
    registrations[key.rawValue]?.interest = interest
    systemCalls.controls += 1
    do throws(Errno) {
      if interest.isEmpty {
        poller.remove(registration.descriptor)
      } else if former.isEmpty {
        try poller.add(registration.descriptor, key: key, interest: interest)
      } else {
        try poller.modify(registration.descriptor, key: key, interest: interest)
      }
    } catch {
      registrations[key.rawValue]?.interest = []
      loop.execute { [loop = loop!] in
        guard let driver = loop.driver as? KernelDriver else { return }
        driver.deliver(interest, to: key)
      }
      throw error
    }
  }

  /// Ends a registration and releases its handler. The descriptor must still be open.
  func unregister(_ key: PollKey) {
    guard let registration = registrations.remove(key.rawValue) else { return }
    guard !registration.interest.isEmpty, !isClosed else { return }
    systemCalls.controls += 1
    poller.remove(registration.descriptor)
  }

  private func deliver(_ readiness: Readiness, to key: PollKey) {
    guard let registration = registrations[key.rawValue] else { return }
    registration.handler.transportReady(readiness, token: registration.token)
  }
}

// MARK: - Sockets

extension KernelDriver {
  func connect(
    to address: SocketAddress,
    options: SocketOptions
  ) throws(SocketError) -> any Transport {
    OutsideConnects.shared.tell(.address(address))
    do throws(Errno) {
      guard !isClosed else { throw Errno(ESHUTDOWN) }
      let socket = try Socket(address.nativeFamily)
      try socket.configure(options, tcp: address.family != .unix)
      _ = try SystemCall.connect(socket.descriptor, to: address)
      return KernelTransport(socket, loop: loop, driver: self, peer: address)
    } catch {
      throw SocketError(operation: "connect", errno: error.code, address: address)
    }
  }

  func listen(
    on address: SocketAddress,
    options: SocketOptions
  ) throws(SocketError) -> any TransportListener {
    do throws(Errno) {
      guard !isClosed else { throw Errno(ESHUTDOWN) }
      return try KernelListener(on: address, options: options, loop: loop, driver: self)
    } catch {
      throw SocketError(operation: "listen", errno: error.code, address: address)
    }
  }
}
