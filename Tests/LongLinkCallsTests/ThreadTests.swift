// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCalls
import LongLinkServer
import Logging
import Testing

/// Callers on threads of their own, over a real connection.
@Suite struct ThreadTests {
  private let read = RawMethod.raw(1, .reading)
  private let kept = RawMethod.raw(
    1, CallPolicy(cache: CachePolicy(fresh: .milliseconds(2), stale: .milliseconds(2))))

  @Test func `callers of the global pool get their answers, or their cancels`() async throws {
    var settings = ServerConfiguration(listen: [.host("127.0.0.1", port: 0)])
    settings.logger.logLevel = .critical
    let server = try LongLinkServer(settings)
    server.route(1) { $0.body }
    try await server.start()
    let client = try LongLinkClient(to: server.endpoint)
    let api = try CallClient(client)
    await withTaskGroup(of: Void.self) { group in
      for worker in 0..<8 {
        group.addTask(executorPreference: globalConcurrentExecutor) {
          for round in 0..<200 {
            let body = [UInt8(round % 7)]
            let method = round % 2 == 0 ? read : kept
            let task = Task { try await api.call(method, body) }
            if (worker + round) % 5 == 0 { task.cancel() }
            switch await task.result {
            case .success(let answer): #expect(answer == body)
            case .failure(let error): #expect((error as? CallError)?.code == .cancelled)
            }
          }
          let calls = (0..<20).map { read([UInt8($0)]) }
          let values = try? await api.group(calls, maxConcurrent: 3).values
          #expect(values == (0..<20).map { [UInt8($0)] })
        }
      }
    }
    await client.close()
    await server.shutDown(within: .zero)
    let counters = await api.counters()
    #expect(counters.callsOpen == 0 && counters.exchangesOpen == 0)
  }
}
