// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import LongLinkCore
internal import LongLinkServer
internal import LongLinkTransport
internal import Synchronization

/// Makes the handlers of a scenario, for one process.
struct HandlerSink: Sendable {
  enum Handler {
    case inline(@Sendable (InboundRequest) throws -> any BodyEncodable & Sendable)
    case task(@Sendable (InboundRequest) async throws -> any BodyEncodable & Sendable)
  }

  let stage: ScenarioStage
  /// False once the process has crashed: handlers that still run then do not count.
  let isAlive: @Sendable () -> Bool

  func handleAll(_ set: (MessageType, Handler) -> Void) {
    set(ScenarioStage.Kind.inline, .inline { try answer(try began($0)) })
    set(
      ScenarioStage.Kind.delayed,
      .task { request in
        try await whileRunning {
          let body = try began(request)
          try await request.clock.sleep(for: .milliseconds(Int(body.delay)))
          return try answer(body)
        }
      })
    set(
      ScenarioStage.Kind.rejecting,
      .task { request in
        try await whileRunning {
          let body = try began(request)
          throw Rejection(1_000, body: ScenarioBody(key: body.key).bytes(count: 16))
        }
      })
    set(
      ScenarioStage.Kind.hanging,
      .task { request in
        try await whileRunning {
          _ = try began(request)
          try await request.clock.sleep(for: .seconds(100_000))
          return [UInt8]()
        }
      })
    for request in stage.plan.requests where request.size == 0 {
      let type = ScenarioStage.Kind.empty(request.key)
      set(
        type,
        .inline { inbound in
          if isAlive() { stage.oracle.requests.ran(request.key) }
          guard inbound.body.isEmpty else { throw Rejection(.malformed) }
          return [UInt8]()
        })
    }
  }

  /// Records a request when its handler begins.
  private func began(_ request: InboundRequest) throws -> ScenarioBody {
    guard let body = ScenarioBody(request.body) else {
      stage.oracle.found(.ownAnswers, "a request of \(request.body.count) bytes is damaged")
      throw Rejection(.malformed)
    }
    if isAlive() { stage.oracle.requests.ran(body.key) }
    return body
  }

  private func answer(_ body: ScenarioBody) throws -> [UInt8] {
    ScenarioBody(key: body.key, answerSize: body.answerSize).bytes(count: Int(body.answerSize))
  }

  private func whileRunning(
    _ work: () async throws -> [UInt8]
  ) async throws -> [UInt8] {
    stage.state.withLock { $0.running += 1 }
    defer { stage.state.withLock { $0.running -= 1 } }
    return try await work()
  }
}
