// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkTLS

let arguments = CommandLine.arguments
let token = arguments.count > 1 ? arguments[1] : "token-of-ann"
let port = arguments.count > 2 ? UInt16(arguments[2]) ?? 9001 : 9001

// The server's certificate has to be for the name that the client connects to, `localhost`. It is
// its own authority here; with a certificate of a public one, leave `roots` out.
var tls = TLSClientConfiguration()
tls.roots = .only(.file("server.pem"))
var configuration = ClientConfiguration(servers: [.host("localhost", port: port)])
configuration.security = try .tls(tls)
configuration.identity.credential = { Array(token.utf8) }
let client = try LongLinkClient(configuration)
do {
  try await client.connect()
  let reply = try await client.request(1, Array("world".utf8))
  print(String(decoding: reply, as: UTF8.self))
} catch {
  print(error)
  exit(1)
}
await client.close(within: .seconds(1))
