// SPDX-License-Identifier: Apache-2.0

import LongLink
import Telemetry

let client = try LongLinkClient(to: .host("127.0.0.1", port: 9000)) { connection in
  // On each connection, before anything else.
  _ = try await HubClient(connection).register(RegisterRequest(device: "oven"))
}
let (hub, settings) = (HubClient(client), client.pushes(of: Settings.self))
try await client.connect()  // If it cannot, this throws at once. A request would wait.
print("seconds between readings:", try await settings.first { _ in true }?.seconds ?? 0)
let reports = Task {
  try await hub.report { writer in
    while true {
      try await writer.write(Reading(device: "oven", celsius: 180))
      try await Task.sleep(for: .milliseconds(100))
    }
  }
}
let watch = hub.watch(
  resuming: { last in WatchRequest(after: last?.number ?? 0) },
  retryingWhen: { $0.response == .gone })  // The server has forgotten what follows: begin anew.
let reading = try await watch.first { $0.device == "oven" }
print("oven", reading?.celsius ?? 0)  // The watch is cancelled now, here and in the server.
reports.cancel()
await client.close(within: .seconds(1))
