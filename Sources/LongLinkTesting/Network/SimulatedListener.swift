// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

/// A listening socket of the simulated network, on its loop.
final class SimulatedListener: TransportListener {
  let localAddress: SocketAddress
  private let number: Int
  private let driver: SimulatedDriver
  private let networkState: SharedNetwork
  private let loop: EventLoop
  private var interest: Readiness = []
  private var isAttached = false
  private var isOpen = true

  init(_ listener: NetworkListener, driver: SimulatedDriver, loop: EventLoop) {
    localAddress = listener.address
    number = listener.number
    self.driver = driver
    self.loop = loop
    networkState = driver.networkState
  }

  deinit {
    guard isOpen else { return }
    networkState { [number] in $0.closeListener(number) }
    guard isAttached else { return }
    if loop.isCurrent {
      driver.unregister(.listener(number))
    } else {
      loop.execute { [loop, number] in
        (loop.driver as? SimulatedDriver)?.unregister(.listener(number))
      }
    }
  }

  func attach(_ handler: any TransportHandler, token: UInt64) {
    requireOpen()
    driver.register(.listener(number), handler, token: token)
    isAttached = true
    networkState { [number, interest] in $0.setInterest(interest, of: .listener(number)) }
  }

  func setInterest(_ interest: Readiness) {
    requireOpen()
    guard interest != self.interest else { return }
    self.interest = interest
    guard isAttached else { return }
    networkState { [number] in $0.setInterest(interest, of: .listener(number)) }
  }

  func accept() throws(SocketError) -> (any AcceptedTransport)? {
    requireOpen()
    guard let link = networkState({ [number] in $0.addresses.accept(number) }) else { return nil }
    return SimulatedAcceptedTransport(
      EndName(link: link, side: .acceptor), networkState: networkState)
  }

  func close() {
    guard isOpen else { return }
    isOpen = false
    if isAttached { driver.unregister(.listener(number)) }
    networkState { [number] in $0.closeListener(number) }
  }

  private func requireOpen() {
    precondition(isOpen, "a closed listener was used")
  }
}

/// An accepted end of a link that no loop owns yet.
final class SimulatedAcceptedTransport: AcceptedTransport {
  let peerAddress: SocketAddress?
  private let name: EndName
  private let networkState: SharedNetwork
  private let isAdopted = Atomic(false)

  init(_ name: EndName, networkState: SharedNetwork) {
    self.name = name
    self.networkState = networkState
    peerAddress = networkState { $0.end(name)?.peer }
  }

  deinit {
    guard !isAdopted.load(ordering: .acquiring) else { return }
    networkState { [name] in $0.close(name) }
  }

  func adopt(on loop: EventLoop) throws(SocketError) -> any Transport {
    loop.preconditionCurrent()
    guard let driver = loop.driver as? SimulatedDriver, driver.networkState === networkState else {
      preconditionFailure("a stream can only be adopted by a loop of its simulation")
    }
    let wasAdopted = isAdopted.exchange(true, ordering: .acquiringAndReleasing)
    precondition(!wasAdopted, "an accepted stream was adopted twice")
    networkState { [name] in $0.adopt(name, on: driver.index) }
    return SimulatedTransport(name, driver: driver, loop: loop)
  }
}
