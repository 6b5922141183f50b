// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Logging
import LongLink
import LongLinkCommandSupport

/// The server that a client connects to, and how much the client logs.
struct ServerOptions: ParsableArguments {
  @OptionGroup private var place: EndpointOptions
  @OptionGroup private var security: SecurityOptions

  @Flag(name: .shortAndLong, help: "Log to standard error.")
  var verbose = false

  var endpoint: Endpoint { place.endpoint }

  /// Whether the client proves who it is, with a token or a certificate.
  var hasProof: Bool { security.hasProof }

  /// Makes a client of that server, or of the gateway where `http` names one. Its requests fail,
  /// and do not wait, without a connection.
  func makeClient(
    over http: HTTPOptions? = nil, as identity: IdentityOptions? = nil,
    _ change: (inout ClientConfiguration) -> Void
  ) throws -> LongLinkClient {
    guard http?.isGiven != true || !place.isGiven else {
      throw Output.usageError("Give --http, or the server's host, port or socket, not both.")
    }
    var configuration = ClientConfiguration(servers: [endpoint])
    configuration.waitsForConnection = false
    configuration.name = "longlink"
    configuration.logger.logLevel = verbose ? .debug : .error
    change(&configuration)
    try http?.apply(to: &configuration)
    try security.apply(to: &configuration, endpoint, overHTTP: http?.isGiven == true)
    try identity?.apply(to: &configuration, overHTTP: http?.isGiven == true)
    do {
      return try LongLinkClient(configuration)
    } catch {
      throw Output.usageError("\(error)")
    }
  }

  /// Connects, within a time if there is one.
  func connect(
    _ client: LongLinkClient, within time: Duration?
  ) async throws(LongLinkError) {
    let outcome = await withTaskGroup(of: Result<Void, LongLinkError>.self) { group in
      group.addTask {
        do throws(LongLinkError) {
          return .success(try await client.connect())
        } catch {
          return .failure(error)
        }
      }
      if let time {
        group.addTask {
          // If the connect was faster, this is cancelled and its result ignored.
          try? await Task.sleep(for: time)
          return .failure(LongLinkError(.deadlineExceeded, doing: "connect to \(endpoint)"))
        }
      }
      defer { group.cancelAll() }
      return await group.next()
    }
    try outcome?.get()
  }
}
