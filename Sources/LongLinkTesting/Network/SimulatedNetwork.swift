// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
public import LongLinkTransport

/// The network between the loops of a simulation. From any thread; changes hold from the present
/// moment of virtual time on.
public struct SimulatedNetwork: Sendable {
  let networkState: SharedNetwork

  /// How bytes travel on links that are made from now on, in both directions.
  public var conditions: LinkConditions {
    get { networkState { $0.conditions.general } }
    nonmutating set { networkState { $0.conditions.general = newValue } }
  }

  /// Says how bytes travel on new links to an address, in both directions; nil for as on others.
  public func setConditions(_ conditions: LinkConditions?, to address: SocketAddress) {
    networkState { $0.conditions.byAddress[address] = conditions }
  }

  /// Says how bytes travel from one machine to another on new links, whichever side connects; nil
  /// for as on others. It goes before what is said of an address.
  public func setConditions(
    _ conditions: LinkConditions?,
    from machine: SimulatedMachine,
    to other: SimulatedMachine
  ) {
    let path = MachinePath(from: machine.index, to: other.index)
    networkState { $0.conditions.byPath[path] = conditions }
  }

  /// How attempts to connect are answered from now on.
  public var connects: ConnectBehavior {
    get { networkState { $0.conditions.connects } }
    nonmutating set { networkState { $0.conditions.connects = newValue } }
  }

  /// Says how attempts to connect to an address are answered; nil for as to others.
  public func setConnects(_ behavior: ConnectBehavior?, to address: SocketAddress) {
    networkState { $0.conditions.connectsByAddress[address] = behavior }
  }

  // MARK: Partitions

  /// Cuts two groups of machines off from each other: what is written between them does not arrive,
  /// attempts to connect are not answered, and nobody is told.
  ///
  /// What is under way arrives. `duration` is how long it lasts; nil, the default, is until the
  /// partition that is returned is ended, or ``Simulation/heal()``.
  @discardableResult
  public func partition(
    _ left: [SimulatedMachine],
    from right: [SimulatedMachine],
    for duration: Duration? = nil
  ) -> NetworkPartition {
    part(left, from: Set(right.map(\.index)), duration)
  }

  /// Cuts machines off from all others, those that are made later included.
  @discardableResult
  public func isolate(
    _ machines: SimulatedMachine...,
    for duration: Duration? = nil
  ) -> NetworkPartition {
    part(machines, from: nil, duration)
  }

  private func part(
    _ left: [SimulatedMachine],
    from right: Set<Int>?,
    _ duration: Duration?
  ) -> NetworkPartition {
    let left = Set(left.map(\.index))
    let number = networkState { $0.part(left, from: right) }
    networkState.after(duration) { $0.endPartition(number) }
    return NetworkPartition(number: number, networkState: networkState)
  }

  // MARK: Names

  /// Gives a name its addresses, in order, whose ports do not matter, and how long a look-up takes.
  ///
  /// Other names are not found, except `localhost`.
  public func host(
    _ name: String,
    addresses: [SocketAddress],
    delay: Duration = .milliseconds(1)
  ) {
    let record = AddressBook.HostRecord(
      result: .success(addresses),
      delay: max(delay.clampedNanoseconds, 0)
    )
    networkState { $0.addresses.hosts[name] = record }
  }

  /// Makes look-ups of a name fail, after a time.
  public func failLookUps(
    of name: String,
    with error: ResolveError,
    delay: Duration = .milliseconds(1)
  ) {
    let record = AddressBook.HostRecord(
      result: .failure(error), delay: max(delay.clampedNanoseconds, 0))
    networkState { $0.addresses.hosts[name] = record }
  }

  // MARK: Links

  /// The links that one of their sides has open, connecting ones included, in the order in which
  /// they were made.
  public var links: [SimulatedLink] {
    networkState { networkState in networkState.links.keys.sorted() }.map {
      SimulatedLink(number: $0, networkState: networkState)
    }
  }

  /// The links to an address, in the order in which they were made.
  public func links(to address: SocketAddress) -> [SimulatedLink] {
    links.filter { $0.destination == address }
  }

  /// Loses all links at once: both sides of each hear of a reset.
  public func loseAllLinks() {
    for link in links { link.lose() }
  }
}
