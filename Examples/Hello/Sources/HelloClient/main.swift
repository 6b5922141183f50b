// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink

let port = CommandLine.arguments.dropFirst().first.flatMap(UInt16.init) ?? 9000
let client = try LongLinkClient(to: .host("127.0.0.1", port: port))
do {
  try await client.connect()  // Without this, the request would wait for the server to appear.
  let reply = try await client.request(1, Array("world".utf8))
  print(String(decoding: reply, as: UTF8.self))
} catch {
  // `error.code` is the kind of failure, and `error.delivery` whether the request may have run.
  print(error)
  exit(1)
}
await client.close(within: .seconds(1))
