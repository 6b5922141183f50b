// SPDX-License-Identifier: Apache-2.0

import LongLink
import Telemetry

let client = try LongLinkClient(to: .host("127.0.0.1", port: 9000))
try await client.connect()  // If it cannot, this throws at once. A request would wait.
let (hub, settings) = (HubClient(client), client.pushes(of: Settings.self))
_ = try await hub.register(RegisterRequest(device: "oven"))
print("seconds between readings:", try await settings.first { _ in true }?.seconds ?? 0)
let reports = Task {
  try await hub.report { writer in
    while true {
      try await writer.write(Reading(device: "oven", celsius: 180))
      try await Task.sleep(for: .milliseconds(100))
    }
  }
}
if let reading = try await hub.watch(WatchRequest()).first(where: { $0.device == "oven" }) {
  print(reading.device, reading.celsius)  // The watch is cancelled now, here and in the server.
}
reports.cancel()
await client.close(within: .seconds(1))
