// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BenchSupport
import LongLinkOnce
import LongLinkServer
import Logging

struct Serve: AsyncParsableCommand {
  @Option(help: "With --tls, the PEM file of the certificate; by default one is made.")
  var tlsCertificate: String?
  @Option(help: "The file of its private key.")
  var tlsKey: String?
  @Flag(help: "Handle requests in tasks instead of synchronously.")
  var asynchronous = false
  @Option(help: "The most concurrent requests of one connection.")
  var maxInFlight = 1_024
  @Option(help: "Microseconds for which the loop spins before it sleeps.")
  var busyPoll = 0
  @Flag(help: "Secure the connections with TLS.")
  var tls = false
  @Flag(help: "Run requests once, with records in memory, for clients that ask for it.")
  var once = false
  @Option(help: "Accept the principals that credentials name, for this number of seconds.")
  var validity: Double?

  func run() async throws {
    let loop = try EventLoop(name: "bench", busyPoll: .microseconds(busyPoll))
    var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    // Room for four items of 64 KiB, as on the client.
    configuration.limits.streamWindows.first = 262_208
    configuration.limits.maxConnections = 20_000
    configuration.limits.maxInFlight = maxInFlight
    configuration.logger.logLevel = .critical
    configuration.security = try Secured.server(tls, certificate: tlsCertificate, key: tlsKey)
    if once {
      // As many records as come within the retention.
      let store = MemoryOnceStore(maxRecords: 8_000_000, maxBytes: 2 << 30)
      configuration.once = OnceConfiguration(store: store, retention: .seconds(2))
    }
    if let validity { Principals.accept(for: .seconds(validity), in: &configuration) }
    let server = try LongLinkServer(configuration, on: [loop])
    let requests = RequestCount()
    if asynchronous {
      server.route(1) { request async in
        requests.oneMoreOnOneThread()
        return request.body
      }
      server.route(quotes) { quote, _ async in
        requests.oneMoreOnOneThread()
        return quote
      }
    } else {
      server.route(1) { request in
        requests.oneMoreOnOneThread()
        return request.body
      }
      server.route(quotes) { quote, _ in
        requests.oneMoreOnOneThread()
        return quote
      }
    }
    StreamTypes.route(on: server, counting: requests)
    server.route(Idle.tellAll) { [unowned server] _ in
      let report = try await server.broadcast(Idle.news, [UInt8](repeating: 7, count: 256))
      guard report.skipped == 0, report.dropped == 0 else { throw Rejection(.overloaded, "") }
      return [UInt8]()
    }
    try await server.start()
    Serving.listening(on: server.addresses.first?.port ?? 0)
    Serving.waitForTheEnd { requests.value }
  }
}
