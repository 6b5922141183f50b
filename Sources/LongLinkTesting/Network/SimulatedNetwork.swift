// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
public import LongLinkTransport

/// The network between the loops of a simulation. Any thread may use it. Changes take effect at the
/// current virtual time.
public struct SimulatedNetwork: Sendable {
  let networkState: SharedNetwork

  /// The conditions of links made from now on, in both directions; initially
  /// ``LinkConditions/normal``. Those set for an address, or for a pair of machines, take
  /// precedence.
  public var conditions: LinkConditions {
    get { networkState { $0.conditions.general } }
    nonmutating set { networkState { $0.conditions.general = newValue } }
  }

  /// Sets the conditions of new links to an address, in both directions. With nil, ``conditions``
  /// apply again.
  public func setConditions(_ conditions: LinkConditions?, to address: SocketAddress) {
    networkState { $0.conditions.byAddress[address] = conditions }
  }

  /// Sets the conditions from one machine to another on new links, whichever side connects. They
  /// take precedence over the conditions of an address. With nil, those of the address apply again,
  /// or else ``conditions``.
  public func setConditions(
    _ conditions: LinkConditions?,
    from machine: SimulatedMachine,
    to other: SimulatedMachine
  ) {
    let path = MachinePath(from: machine.index, to: other.index)
    networkState { $0.conditions.byPath[path] = conditions }
  }

  /// How the network answers attempts to connect from now on, unless `setConnects` says otherwise
  /// for an address; initially `normal`.
  public var connects: ConnectBehavior {
    get { networkState { $0.conditions.connects } }
    nonmutating set { networkState { $0.conditions.connects = newValue } }
  }

  /// Sets how the network answers attempts to connect to an address from now on. With nil,
  /// ``connects`` applies again.
  public func setConnects(_ behavior: ConnectBehavior?, to address: SocketAddress) {
    networkState { $0.conditions.connectsByAddress[address] = behavior }
  }

  // MARK: Partitions

  /// Cuts two groups of machines off from each other: packets between them do not arrive, and
  /// attempts to connect get no answer. No side is notified. But a client that limits the time for
  /// acknowledgements (`TCP_USER_TIMEOUT`) fails with `ETIMEDOUT` after that time.
  ///
  /// Packets in flight still arrive. The partition lasts for `duration`, or until you call
  /// ``NetworkPartition/heal()`` or ``Simulation/heal()``.
  @discardableResult
  public func partition(
    _ left: [SimulatedMachine],
    from right: [SimulatedMachine],
    for duration: Duration? = nil
  ) -> NetworkPartition {
    part(left, from: Set(right.map(\.index)), duration)
  }

  /// Cuts machines off from all others, including machines made later, but not from each other.
  ///
  /// Otherwise it is like ``partition(_:from:for:)``.
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

  /// Sets the addresses of a host name, in order, and the virtual time that a look-up takes.
  ///
  /// The ports of the addresses are ignored, and a negative delay is 0. Look-ups of a name that was
  /// not set fail, except `localhost`, which is 127.0.0.1.
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

  /// Makes look-ups of a host name fail after a virtual delay, with a text and a code of
  /// `getaddrinfo`, such as `EAI_AGAIN`.
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

  /// The links to an address with at least one open side, in order of creation.
  public func links(to address: SocketAddress) -> [SimulatedLink] {
    links.filter { $0.destination == address }
  }

  /// Breaks all links at the same virtual time, like ``SimulatedLink/lose()``: both sides of each
  /// get a reset.
  public func loseAllLinks() {
    for link in links { link.lose() }
  }
}
