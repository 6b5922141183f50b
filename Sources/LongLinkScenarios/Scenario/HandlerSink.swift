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
  /// Whether the process has not crashed: handlers that still run after a crash do not count.
  let isAlive: @Sendable () -> Bool

  func handleAll(_ set: (MessageType, Handler) -> Void) {
    set(
      ScenarioStage.Kind.inline,
      .inline { request in
        let body = try began(request)
        defer { returned(body.key) }
        return try answer(body)
      })
    set(
      ScenarioStage.Kind.delayed,
      .task { request in
        try await run(request) { body in
          try await request.clock.sleep(for: .milliseconds(Int(body.delay)))
          return try answer(body)
        }
      })
    set(
      ScenarioStage.Kind.rejecting,
      .task { request in
        try await run(request) { body in
          throw Rejection(1_000, body: ScenarioBody(key: body.key).bytes(count: 16))
        }
      })
    set(
      ScenarioStage.Kind.hanging,
      .task { request in
        try await run(request) { _ in
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
          defer { returned(request.key) }
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

  private func run(
    _ request: InboundRequest, _ work: (ScenarioBody) async throws -> [UInt8]
  ) async throws -> [UInt8] {
    stage.state.withLock { $0.running += 1 }
    defer { stage.state.withLock { $0.running -= 1 } }
    let body = try began(request)
    defer { returned(body.key) }
    return try await work(body)
  }

  /// Records that a handler returns, unless it was cancelled, so that its result is dropped.
  private func returned(_ key: UInt64) {
    if isAlive(), !Task.isCancelled { stage.oracle.requests.returned(key) }
  }
}
