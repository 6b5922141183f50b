// SPDX-License-Identifier: Apache-2.0

import LongLinkServer
import Telemetry

struct Hub: HubService {
  let readings = ItemBroadcast<Reading>(.close(64), remembering: 1_000)

  func register(_ request: RegisterRequest, context: InboundRequest) async throws -> RegisterReply {
    guard !request.device.isEmpty else { throw Rejection(1_000, "a device needs a name") }
    try await context.peer.push(Settings(seconds: 10))
    return RegisterReply()
  }
  func report(_ items: Items<Reading>, context: InboundRequest) async throws -> ReportReply {
    var reply = ReportReply()
    for try await reading in items.untilDraining {
      try readings.publish { Reading(device: reading.device, celsius: reading.celsius, number: $0) }
      reply.count += 1
    }
    return reply
  }
  func watch(
    _ request: WatchRequest, writer: ItemWriter<Reading>, context: InboundRequest
  ) async throws {
    try await context.untilDraining { try await readings.send(to: writer, after: request.after) }
  }
}

let server = try LongLinkServer(listen: .host("127.0.0.1", port: 9000))
server.register(hub: Hub())
try await server.run(until: .sigterm)
