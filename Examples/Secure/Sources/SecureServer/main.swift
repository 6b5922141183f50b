// SPDX-License-Identifier: Apache-2.0

import LongLinkServer
import LongLinkTLS

// Who has which token. A real server looks this up: secrets do not belong in its source.
let principals = [
  Array("token-of-ann".utf8): Principal("ann", attributes: ["role": "editor"]),
  Array("token-of-bob".utf8): Principal("bob", attributes: ["role": "reader"]),
]

let port = CommandLine.arguments.dropFirst().first.flatMap(UInt16.init) ?? 9001
var configuration = ServerConfiguration(listen: [.host("127.0.0.1", port: port)])
configuration.security = try .tls(
  TLSServerConfiguration(chainFile: "server.pem", keyFile: "server-key.pem"))
configuration.identity.authenticate = { client in
  guard let principal = principals[client.credential ?? []] else {
    throw Rejection(.unauthenticated, "unknown token")
  }
  return Authentication(principal)
}
let server = try LongLinkServer(configuration)

// Bob is refused before this handler runs.
server.route(1, requires: .attribute("role", "editor")) { request in
  Array("Hello, \(String(decoding: request.body, as: UTF8.self))!".utf8)
}

// Until Ctrl-C, or `kill`: running requests finish first.
try await server.run(until: .sigint, .sigterm) {
  print("listening on", server.addresses[0])
}
