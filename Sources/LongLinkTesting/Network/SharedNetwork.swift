// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
internal import LongLinkTransport
internal import Synchronization

/// The state of the simulated world behind a lock, and its time, which needs no lock.
///
/// While a simulation runs, only its thread advances the world. The lock lets any thread inspect
/// the world and prepare faults.
package final class SharedNetwork: Sendable {
  private let networkState: Mutex<NetworkState>
  private let time = Atomic<Int64>(0)
  let watch = EscapeWatch()
  /// The targets in this world to which loops outside the simulation have tried to connect.
  private let outside = Mutex<Set<OutsideConnects.Target>>([])
  /// Whether tasks without an executor run on the loop that creates them.
  let capturesTasks: Bool

  init(generator: SeededGenerator, traceCapacity: Int, capturesTasks: Bool) {
    self.capturesTasks = capturesTasks
    networkState = Mutex(NetworkState(generator: generator, traceCapacity: traceCapacity))
  }

  package var now: LinkInstant {
    LinkInstant(nanoseconds: time.load(ordering: .acquiring))
  }

  package func callAsFunction<R, E: Error>(
    _ body: (inout NetworkState) throws(E) -> sending R
  ) throws(E) -> sending R {
    try networkState.withLock(body)
  }

  /// Records that a loop outside the simulation tried to connect to a target, if it is in this
  /// world.
  func tried(_ target: OutsideConnects.Target) {
    let isHere = networkState.withLock { state in
      switch target {
      case .address(let address): state.addresses.listener(at: address) != nil
      case .host(let host, _): state.addresses.hosts[host] != nil
      }
    }
    if isHere { outside.withLock { _ = $0.insert(target) } }
  }

  /// A description of each target to which clients outside the simulation tried to connect.
  var outsideClients: [String] {
    let targets = outside.withLock { $0 }.map { target in
      switch target {
      case .address(let address): "\(address)"
      case .host(let host, let port): "\(host):\(port)"
      }
    }
    return targets.sorted().map { target in
      """
      a client of this process runs on a real event loop, outside the simulation, and connects to \
      \(target); give it `on: simulation.mainLoop`
      """
    }
  }

  /// Advances time and performs due events.
  func advance(to instant: LinkInstant) {
    let calls = networkState.withLock { networkState in
      let calls = networkState.advance(to: instant)
      time.store(networkState.now.nanoseconds, ordering: .releasing)
      return calls
    }
    for call in calls { call() }
  }

  /// Changes the world after a virtual delay; never if `delay` is nil.
  func after(_ delay: Duration?, _ body: @escaping @Sendable (inout NetworkState) -> Void) {
    guard let delay else { return }
    networkState.withLock { networkState in
      let time = networkState.now + max(delay.clampedNanoseconds, 0)
      networkState.schedule.add(.change(body), at: time)
    }
  }
}
