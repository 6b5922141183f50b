// SPDX-License-Identifier: Apache-2.0

package import LongLinkTransport

/// The security of the connections of a ``Scenario``.
///
/// Use keys of Ed25519, whose signatures all have the same size: then a seed gives the same sizes
/// in the same order whenever it is run. Each run makes its own securities, because tickets of one
/// run must not reach another. The functions may be called on any thread.
///
/// ```swift
/// let security = ScenarioSecurity {
///   try .tls(trusted)
/// } server: { edition in
///   try .tls(TLSServerConfiguration(certificates: [identities[edition % identities.count]]))
/// }
/// let report = try await Scenario(seed: 7).run(security: security)
/// ```
package struct ScenarioSecurity: Sendable {
  let client: @Sendable () throws -> ClientSecurity
  let server: @Sendable (_ edition: Int) throws -> ServerSecurity

  /// Makes a scenario's security from functions that make that of a client, and that of a server.
  ///
  /// A server's certificates are replaced during a run: `edition` counts from 0. They have to be
  /// for the names `server-0`, `server-1` and `server-2`, and valid from 2026 on, where runs begin.
  package init(
    client: @escaping @Sendable () throws -> ClientSecurity,
    server: @escaping @Sendable (_ edition: Int) throws -> ServerSecurity
  ) {
    self.client = client
    self.server = server
  }
}
