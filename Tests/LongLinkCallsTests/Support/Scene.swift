// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCalls
import LongLinkTesting
import LongLinkTransport
import Logging
import Synchronization
import Testing

/// A scripted server and a call client of it, in a simulation.
struct Scene: Sendable {
  let simulation: Simulation
  let server: SimulatedServer
  let client: LongLinkClient
  let api: CallClient

  /// Runs a body; afterwards everything is closed, and nothing may be left.
  static func run(
    seed: UInt64 = 1,
    _ configuration: CallConfiguration = CallConfiguration(),
    configure: @escaping @Sendable (inout ClientConfiguration) -> Void = { _ in },
    _ body: @escaping @Sendable (Scene) async throws -> Void
  ) async throws {
    let simulation = Simulation(seed: seed)
    try await simulation.run {
      let server = try await SimulatedServer.start(
        on: simulation.eventLoop(named: "server"), at: .ipv4(10, 0, 0, 1, port: 0))
      var settings = ClientConfiguration(
        servers: [server.endpoint])
      settings.logger.logLevel = .critical
      configure(&settings)
      let client = try LongLinkClient(settings, on: simulation.mainLoop)
      let scene = Scene(
        simulation: simulation, server: server, client: client,
        api: try CallClient(client, configuration))
      let result: Result<Void, any Error>
      do { result = .success(try await body(scene)) } catch { result = .failure(error) }
      await client.close()
      await server.stop()
      try result.get()
      let counters = await scene.api.counters()
      #expect(counters.callsOpen == 0 && counters.exchangesOpen == 0, "seed \(seed)")
      #expect(await client.counters().requestsOpen == 0, "seed \(seed)")
      #expect(simulation.openStreams == [], "seed \(seed)")
      #expect(simulation.pendingTimers == [], "seed \(seed)")
      #expect(simulation.escapes == [], "seed \(seed)")
    }
  }

  /// Starts a task in the simulation.
  @discardableResult
  func spawn<Value: Sendable>(
    _ body: @escaping @Sendable () async throws -> Value
  ) -> Task<Value, any Error> {
    simulation.spawn(body)
  }

  func sleep(_ duration: Duration) async throws {
    try await simulation.sleep(for: duration)
  }

  /// Waits until a condition holds, which the simulation brings about.
  func until(
    _ condition: () async throws -> Bool, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    for _ in 0..<10_000 {
      if try await condition() { return }
      try await simulation.sleep(for: .milliseconds(1))
    }
    Issue.record("the condition does not come about", sourceLocation: sourceLocation)
    throw CancellationError()
  }
}

/// A list that tasks add to.
final class Tally<Element: Sendable>: Sendable {
  private let state = Mutex<[Element]>([])

  var elements: [Element] { state.withLock { $0 } }
  func add(_ element: Element) { state.withLock { $0.append(element) } }
}

/// Bytes in, bytes out, with what all calls of it say.
struct RawMethod: Sendable {
  let method: RPCMethod<[UInt8], [UInt8]>
  let policy: CallPolicy

  var type: MessageType { method.type }

  static func raw(_ type: MessageType, _ policy: CallPolicy = CallPolicy()) -> RawMethod {
    RawMethod(method: RPCMethod(type), policy: policy)
  }

  func callAsFunction(_ body: [UInt8], policy: CallPolicy = CallPolicy()) -> Call<[UInt8]> {
    method(body, policy: policy.over(self.policy))
  }
}

extension CallClient {
  func call(
    _ method: RawMethod, _ body: [UInt8], policy: CallPolicy = CallPolicy()
  ) async throws(CallError) -> [UInt8] {
    try await value(of: method(body, policy: policy))
  }

  func invalidate(_ method: RawMethod) {
    invalidate(method.method)
  }
}

extension CallPolicy {
  /// That of methods which only read.
  static let reading = CallPolicy(RequestOptions(retry: .idempotent), isShared: true)
}

/// An error of the application.
struct Refusal: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// What a call that has to fail fails with.
func failure<Value>(
  _ body: () async throws -> Value, sourceLocation: SourceLocation = #_sourceLocation
) async throws -> CallError {
  do {
    _ = try await body()
  } catch let error as CallError {
    return error
  }
  Issue.record("it should have failed", sourceLocation: sourceLocation)
  throw CancellationError()
}
