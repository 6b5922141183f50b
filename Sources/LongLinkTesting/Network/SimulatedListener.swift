// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

/// A listening socket of the simulated network, on its loop.
final class SimulatedListener: StreamListener {
  let localAddress: SocketAddress
  private let number: Int
  private let driver: SimulatedDriver
  private let world: SharedWorld
  private let loop: EventLoop
  private var interest: Readiness = []
  private var isAttached = false
  private var isOpen = true

  init(_ listener: NetworkListener, driver: SimulatedDriver, loop: EventLoop) {
    localAddress = listener.address
    number = listener.number
    self.driver = driver
    self.loop = loop
    world = driver.world
  }

  deinit {
    guard isOpen else { return }
    world { [number] in $0.closeListener(number) }
    guard isAttached else { return }
    if loop.isCurrent {
      driver.unregister(.listener(number))
    } else {
      loop.execute { [loop, number] in
        (loop.driver as? SimulatedDriver)?.unregister(.listener(number))
      }
    }
  }

  func attach(_ handler: any StreamHandler, token: UInt64) {
    requireOpen()
    driver.register(.listener(number), handler, token: token)
    isAttached = true
    world { [number, interest] in $0.setInterest(interest, of: .listener(number)) }
  }

  func setInterest(_ interest: Readiness) {
    requireOpen()
    guard interest != self.interest else { return }
    self.interest = interest
    guard isAttached else { return }
    world { [number] in $0.setInterest(interest, of: .listener(number)) }
  }

  func accept() throws(SocketError) -> (any AcceptedStream)? {
    requireOpen()
    guard let link = world({ [number] in $0.accept(number) }) else { return nil }
    return SimulatedAcceptedStream(EndName(link: link, side: .acceptor), world: world)
  }

  func close() {
    guard isOpen else { return }
    isOpen = false
    if isAttached { driver.unregister(.listener(number)) }
    world { [number] in $0.closeListener(number) }
  }

  private func requireOpen() {
    precondition(isOpen, "a closed listener was used")
  }
}

/// An accepted end of a link that no loop owns yet.
final class SimulatedAcceptedStream: AcceptedStream {
  let peerAddress: SocketAddress?
  private let name: EndName
  private let world: SharedWorld
  private let isAdopted = Atomic(false)

  init(_ name: EndName, world: SharedWorld) {
    self.name = name
    self.world = world
    peerAddress = world { $0.end(name)?.peer }
  }

  deinit {
    guard !isAdopted.load(ordering: .acquiring) else { return }
    world { [name] in $0.close(name) }
  }

  func adopt(on loop: EventLoop) throws(SocketError) -> any ByteStream {
    loop.preconditionCurrent()
    guard let driver = loop.driver as? SimulatedDriver, driver.world === world else {
      preconditionFailure("a loop of the same simulation is needed for its streams")
    }
    let wasAdopted = isAdopted.exchange(true, ordering: .acquiringAndReleasing)
    precondition(!wasAdopted, "an accepted stream was adopted twice")
    world { [name] in $0.adopt(name, on: driver.index) }
    return SimulatedStream(name, driver: driver, loop: loop)
  }
}
