// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
@_spi(Loop) internal import LongLinkTransport

extension LongLinkClient {
  /// Reports that the network has changed: another Wi-Fi, mobile data, a VPN that came or went.
  ///
  /// If the client has a connection or is trying to make one, it makes a new one at once, or, if
  /// all servers have asked for a delay, when the first delay is over. It keeps what it knows about
  /// its servers. An existing connection is pinged and stays in use until the new one can be used.
  /// While `prepare` runs for a connection, that one is pinged, and the new one is made once
  /// `prepare` has returned, so that a network that changes all the time does not keep the client
  /// offline.
  ///
  /// `network` is a name for the new network, if you can tell networks apart: `adaptHeartbeat`
  /// remembers by it what was learned. Call it on any thread.
  public func pathChanged(network: String? = nil) {
    perform { $0.pathChanged(network: network) }
  }

  /// Closes the connection until `resume()`, and returns when it has ended.
  ///
  /// For apps that go to the background: a suspended client has no connection, and no timers but
  /// those of deadlines. Requests in flight may still be answered within `bound` (default zero).
  /// After that they fail with `connectionLost`, except those that may be retried, such as
  /// idempotent ones: these wait for the next connection. Waiting requests continue to wait until
  /// their deadlines; those that do not wait for a connection fail with `notConnected`. Call it on
  /// any thread.
  public func suspend(within bound: Duration = .zero) async {
    let gate = Gate<Void>()
    perform { $0.suspend(within: bound.clampedNanoseconds) { gate.open(()) } }
    await gate.value
  }

  /// Ends a suspension, and reconnects if the client was connected or trying to connect before, or
  /// if a request was made since.
  ///
  /// It connects at once, or, if all servers have asked for a delay, when the first delay is over.
  /// Call it on any thread.
  public func resume() {
    perform { $0.resume() }
  }

  /// Replaces the list of servers: requests made after this call go only to servers in it.
  ///
  /// A connection to a server that is not in the new list takes no new requests; its requests may
  /// be answered within `timeouts.lingering`. A connection to a server in both lists stays. Throws
  /// `invalidConfiguration` and changes nothing if the list is empty or has an invalid entry. Call
  /// it on any thread.
  public func switchServers(to servers: [ServerEntry]) throws(LongLinkError) {
    try ServerEntry.validate(servers, field: "servers")
    perform { $0.switchServers(to: servers) }
  }

  /// Switches to the servers of one of the configuration's environments, as `switchServers(to:)`
  /// does.
  ///
  /// Throws `invalidConfiguration` if there is no environment with that name. Call it on any
  /// thread.
  public func switchEnvironment(to name: String) throws(LongLinkError) {
    guard let servers = configuration.environments[name] else {
      throw .configuration("environments", "there is no environment named \(name)")
    }
    try switchServers(to: servers)
  }

  /// Runs `work` on the loop: at once if the caller is on it, so that its next request comes after.
  private func perform(_ work: @escaping @Sendable (ClientCore) -> Void) {
    if loop.isCurrent { work(core.value) } else { loop.execute { [core] in work(core.value) } }
  }
}
