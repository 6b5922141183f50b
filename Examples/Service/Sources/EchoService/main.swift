// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import LongLinkConfiguration
import LongLinkLifecycle
import LongLinkOps
import LongLinkServer

// SERVER_LISTEN=0.0.0.0:9000 in the environment has precedence over the file, and that over the
// address here. The file is read again when it changes.
let path = CommandLine.arguments.dropFirst().first ?? "service.json"
let live = try await LiveConfiguration(.environment, .json(path, isOptional: true))
let base = ServerConfiguration(listen: [.host("127.0.0.1", port: 9000)])
let server = try LongLinkServer(live.server(base))
live.follow(server)

server.route(1) { request in
  try await request.clock.sleep(for: .milliseconds(200))
  return request.body
}

// People, Prometheus, balancers and systemd's watchdog look at the server here. With a token, other
// machines reach it, too.
let environment = ProcessInfo.processInfo.environment
var operations = OperationsConfiguration()
operations.methods = [1: "Echo"]
operations.port = environment["OPERATIONS_PORT"].flatMap { Int($0) } ?? 9001
if let token = environment["OPERATIONS_TOKEN"] {
  (operations.host, operations.token) = ("0.0.0.0", token)
}
let port = try OperationsPort(for: server, operations)
try await port.start()

// At SIGTERM the server is not ready any more, for a second in which balancers can notice that.
// Then its clients move to other servers, and requests that run have ten seconds to end.
let logger = Logger(label: "service")
let service = server.service(drainingWithin: .seconds(10), notice: .seconds(1)) { isReady in
  logger.info(isReady ? "Ready on \(server.endpoint)" : "Not ready")
}
let group = ServiceGroup(
  services: [live, service], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
try await group.run()
