// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkOnce
internal import LongLinkServer
internal import LongLinkTesting
internal import Synchronization

/// Makes the handlers of requests that run once, for one run of a server's process.
struct OnceSink: Sendable {
  let stage: ScenarioStage
  let server: Int
  let run: SimulatedProcess.Run
  /// The server's store, if it is in memory.
  let memory: MemoryOnceStore?

  private var ledger: OnceLedger { stage.oracle.once }

  func handleAll(of server: LongLinkServer) {
    server.route(ScenarioStage.Kind.onceInline) { request in
      let (body, number) = try began(request)
      return answered(number, body, size: body.answerSize)
    }
    task(ScenarioStage.Kind.onceDelayed, server) { _, _ in }
    task(ScenarioStage.Kind.onceLarge, server, size: 70_000) { _, _ in }
    task(ScenarioStage.Kind.onceRunsAgain, server) { _, _ in }
    server.runOnce(ScenarioStage.Kind.onceRunsAgain, unknownEnd: .runAgain)
    task(ScenarioStage.Kind.onceHanging, server) { request, _ in
      try await request.clock.sleep(for: .seconds(100_000))
    }
    task(ScenarioStage.Kind.onceRejecting, server) { _, number in
      returned(number, 1_000, size: 16)
      throw Rejection(1_000, body: [UInt8](repeating: 1, count: 16))
    }
    task(ScenarioStage.Kind.onceNotFinal, server) { request, number in
      guard isFirst(number) else { return }
      returned(number, ScenarioStage.Kind.notFinal, size: 0)
      throw Rejection(ScenarioStage.Kind.notFinal)
    }
    server.runOnce(ScenarioStage.Kind.onceNotFinal, notFinal: [ScenarioStage.Kind.notFinal])
    task(ScenarioStage.Kind.onceCompleting, server) { request, number in
      guard let body = ScenarioBody(request.body) else { return }
      try await request.once?.complete(with: answered(number, body, size: body.answerSize))
      throw Rejection(1_002, "after that")
    }
  }

  private func task(
    _ type: MessageType, _ server: LongLinkServer, size: UInt32? = nil,
    _ work: @escaping @Sendable (InboundRequest, Int?) async throws -> Void
  ) {
    server.route(type) { request async throws -> [UInt8] in
      stage.state.withLock { $0.running += 1 }
      defer { stage.state.withLock { $0.running -= 1 } }
      let (body, number) = try began(request)
      try await request.clock.sleep(for: .milliseconds(Int(body.delay)))
      try await work(request, number)
      return answered(number, body, size: size ?? body.answerSize)
    }
  }

  /// Records a run, and its effect; nil after a crash, when nothing has an effect any more.
  private func began(_ request: InboundRequest) throws -> (ScenarioBody, Int?) {
    guard let body = ScenarioBody(request.body) else {
      stage.oracle.found(.ownAnswers, "a request of \(request.body.count) bytes is damaged")
      throw Rejection(.malformed)
    }
    guard run.isAlive else { return (body, nil) }
    guard let once = request.once else {
      stage.oracle.found(.runsOnce, "request \(body.key) runs without a record")
      throw Rejection(.malformed)
    }
    let retention = Int64((stage.plan.once?.retention ?? .zero) / .milliseconds(1))
    let number = ledger.ran(
      body.key, once.token, on: server,
      memory: memory.map {
        let status = $0.statusNow
        return (status.name, status.time, status.time + retention)
      })
    ledger.reached(.effect, at: server, once.token.number)
    return (body, number)
  }

  private func isFirst(_ number: Int?) -> Bool { number.map { ledger.isFirst($0) } ?? true }

  /// Makes the answer of a run, which names it, and records it.
  private func answered(_ number: Int?, _ body: ScenarioBody, size: UInt32) -> [UInt8] {
    let bytes = ScenarioBody(key: body.key, answerSize: UInt32(number ?? 0)).bytes(count: Int(size))
    returned(number, .ok, size: bytes.count)
    return bytes
  }

  private func returned(_ number: Int?, _ code: ResponseCode, size: Int) {
    // What was cancelled is not answered with this.
    guard let number, run.isAlive, !Task.isCancelled else { return }
    ledger.returned(
      number, code, isRecorded: memory != nil && code != ScenarioStage.Kind.notFinal,
      isKept: size <= 65_536)
  }
}
