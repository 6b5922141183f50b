// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
@_spi(Loop) internal import LongLinkTransport

extension LongLinkClient {
  /// Tells that the network has changed: another Wi-Fi, mobile data, a VPN that came or went.
  ///
  /// The client connects anew at once; what it knows of its servers stays. Where all of them have
  /// asked to be left alone it waits until one may be asked. A connection that is up is asked for a
  /// sign of life and goes on until the new one can be used. `network` names the network where the
  /// caller can tell them apart. Any thread.
  public func pathChanged(network: String? = nil) {
    perform { $0.pathChanged(network: network) }
  }

  /// Gives up the connection until `resume()`, and returns when it has ended.
  ///
  /// For apps that go to the background: no connection, no timer but those of deadlines. What is in
  /// flight may be answered within `bound`, by default not at all; then it fails with
  /// `connectionLost`. Requests that wait go on waiting within their deadlines, those that do not
  /// wait fail with `notConnected`.
  public func suspend(within bound: Duration = .zero) async {
    let gate = Gate<Void>()
    perform { $0.suspend(within: bound.clampedNanoseconds) { gate.open(()) } }
    await gate.value
  }

  /// Connects again after `suspend()`, if a connection was wanted. Any thread.
  ///
  /// It does so at once, or, where all servers have asked to be left alone, when one may be asked.
  public func resume() {
    perform { $0.resume() }
  }

  /// Takes other servers: requests made after this call go to one of these and to no other.
  ///
  /// A connection to such a server takes nothing new; what it carries may be answered within
  /// `lingering`. A connection to a server that is in both lists stays. Throws
  /// `invalidConfiguration` and changes nothing when the list cannot be used. Any thread.
  public func switchServers(to servers: [ServerEntry]) throws(LongLinkError) {
    try ServerEntry.validate(servers, field: "servers")
    perform { $0.switchServers(to: servers) }
  }

  /// Takes the servers of one of the configuration's environments, as `switchServers(to:)` does.
  ///
  /// Throws `invalidConfiguration` when there is no environment of that name.
  public func switchEnvironment(to name: String) throws(LongLinkError) {
    guard let servers = configuration.environments[name] else {
      throw .configuration("environments", "there is none named \(name)")
    }
    try switchServers(to: servers)
  }

  /// Does something on the loop: at once where the caller is there, since its next request is.
  private func perform(_ work: @escaping @Sendable (ClientCore) -> Void) {
    if loop.isCurrent { work(core.value) } else { loop.execute { [core] in work(core.value) } }
  }
}
