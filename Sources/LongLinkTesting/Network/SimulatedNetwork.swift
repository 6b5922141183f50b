// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
public import LongLinkTransport

/// The network between the loops of a simulation. Any thread may use it. Changes take effect at the
/// current virtual time.
public struct SimulatedNetwork: Sendable {
  let networkState: SharedNetwork

  /// The conditions of links made from now on, in both directions.
  public var conditions: LinkConditions {
    get { networkState { $0.conditions.general } }
    nonmutating set { networkState { $0.conditions.general = newValue } }
  }

  /// Sets the conditions of new links to an address, in both directions; nil for the default.
  public func setConditions(_ conditions: LinkConditions?, to address: SocketAddress) {
    networkState { $0.conditions.byAddress[address] = conditions }
  }

  /// Sets the conditions from one machine to another on new links, whichever side connects; nil for
  /// the default. They take precedence over the conditions of an address.
  public func setConditions(
    _ conditions: LinkConditions?,
    from machine: SimulatedMachine,
    to other: SimulatedMachine
  ) {
    let path = MachinePath(from: machine.index, to: other.index)
    networkState { $0.conditions.byPath[path] = conditions }
  }

  /// How the network answers attempts to connect from now on; initially `normal`.
  public var connects: ConnectBehavior {
    get { networkState { $0.conditions.connects } }
    nonmutating set { networkState { $0.conditions.connects = newValue } }
  }

  /// Sets how the network answers attempts to connect to an address from now on; nil for
  /// `connects`.
  public func setConnects(_ behavior: ConnectBehavior?, to address: SocketAddress) {
    networkState { $0.conditions.connectsByAddress[address] = behavior }
  }

  // MARK: Partitions

  /// Cuts two groups of machines off from each other: packets between them do not arrive, attempts
  /// to connect get no answer, and no side is notified.
  ///
  /// Packets in flight still arrive. The partition lasts for `duration`, or until you heal it, or
  /// until ``Simulation/heal()``.
  @discardableResult
  public func partition(
    _ left: [SimulatedMachine],
    from right: [SimulatedMachine],
    for duration: Duration? = nil
  ) -> NetworkPartition {
    part(left, from: Set(right.map(\.index)), duration)
  }

  /// Cuts machines off from all others, including machines made later; otherwise like `partition`.
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

  /// Sets the addresses of a name, in order, and the time that a look-up takes.
  ///
  /// The ports of the addresses are ignored. Unknown names are not found, except `localhost`.
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

  /// Makes look-ups of a name fail after a delay, with a text and a code of `getaddrinfo`.
  public func failLookUps(
    of name: String,
    with reason: String,
    code: Int32,
    delay: Duration = .milliseconds(1)
  ) {
    let error = ResolveError(host: name, reason: reason, code: code)
    let record = AddressBook.HostRecord(
      result: .failure(error), delay: max(delay.clampedNanoseconds, 0))
    networkState { $0.addresses.hosts[name] = record }
  }

  // MARK: Links

  /// The links with at least one open side, including connecting ones, in order of creation.
  public var links: [SimulatedLink] {
    networkState { networkState in networkState.links.keys.sorted() }.map {
      SimulatedLink(number: $0, networkState: networkState)
    }
  }

  /// The links to an address, in order of creation.
  public func links(to address: SocketAddress) -> [SimulatedLink] {
    links.filter { $0.destination == address }
  }

  /// Breaks all links at the same time: both sides of each get a reset.
  public func loseAllLinks() {
    for link in links { link.lose() }
  }
}
