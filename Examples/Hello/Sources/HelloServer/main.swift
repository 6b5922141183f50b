// SPDX-License-Identifier: Apache-2.0

import LongLinkServer

// The first argument is the port to listen on; 0 takes a free one.
let port = CommandLine.arguments.dropFirst().first.flatMap(UInt16.init) ?? 9000
let server = try LongLinkServer(listen: .host("127.0.0.1", port: port))

// Answers requests with the message type 1. Their bodies are bytes of your own format.
server.route(1) { request in
  Array("Hello, \(String(decoding: request.body, as: UTF8.self))!".utf8)
}

try await server.start()
print("listening on", server.addresses[0])
await server.waitUntilShutDown()
