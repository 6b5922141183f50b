// SPDX-License-Identifier: Apache-2.0

internal import LongLink
internal import LongLinkDriver
internal import LongLinkCore
internal import LongLinkServer
internal import LongLinkTesting
internal import LongLinkTransport
internal import Synchronization

// The requests and pushes of a scenario.
extension ScenarioStage {
  /// Makes every request and push of the plan at its time.
  func ask() async throws {
    var pushes = plan.pushes[...]
    var number: UInt64 = 1_000_000
    for request in plan.requests {
      while let push = pushes.first, push.at <= request.at {
        pushes.removeFirst()
        try await wait(until: push.at)
        number += 1
        send(push, number)
      }
      try await wait(until: request.at)
      if request.isFromServer {
        await requestFromClient(request)
      } else {
        ask(request, clients[request.client])
      }
      if request.key % 4 == 0 { simulation.spawn { await self.sampleOnce() } }
    }
  }

  private func wait(until time: Duration) async throws {
    let rest = time - elapsed
    if rest > .zero { try await simulation.sleep(for: rest) }
  }

  // MARK: Requests of clients

  private func ask(_ request: ScenarioPlan.Request, _ client: LongLinkClient) {
    let asked = Asked(request)
    oracle.requests.asked(
      request.key,
      deadline: request.deadline ?? client.configuration.timeouts.request,
      // An ordered request is not retried once it may have run.
      mayRunAgain: request.isIdempotent && !request.isOrdered,
      inOrderOf: request.isOrdered ? "client-\(request.client)" : nil)
    let end = { @Sendable [self] (result: Result<[UInt8], LongLinkError>) in
      oracle.requests.ended(request.key, result, isOwnAnswer: isAnswer(result, to: asked.body))
    }
    switch request.style {
    case .awaitedOnLoop, .awaitedElsewhere:
      let loop = request.style == .awaitedOnLoop ? client.loop : simulation.mainLoop
      let task = simulation.spawn(on: loop) {
        end(
          await Self.result { () async throws(LongLinkError) in
            try await client.request(asked.type, asked.bytes, options: asked.options)
          })
      }
      cancel(after: request.cancelAfter) { task.cancel() }
    case .completion:
      let task = client.request(
        asked.type, asked.bytes, options: asked.options, on: .connectionLoop, completion: end)
      cancel(after: request.cancelAfter) { task.cancel() }
    case .handle:
      let task = client.submit(asked.type, asked.bytes, options: asked.options)
      simulation.spawn {
        end(await Self.result { () async throws(LongLinkError) in try await task.value })
      }
      cancel(after: request.cancelAfter) { task.cancel() }
    }
  }

  private func cancel(after time: Duration?, _ cancel: @escaping @Sendable () -> Void) {
    guard let time else { return }
    simulation.spawn {
      try await self.simulation.sleep(for: time)
      cancel()
    }
  }

  /// Whether a success has the body that the request's handler returns.
  func isAnswer(_ result: Result<[UInt8], LongLinkError>, to body: ScenarioBody?) -> Bool {
    guard case .success(let bytes) = result else { return true }
    guard let body else { return bytes.isEmpty }
    let answer = ScenarioBody(key: body.key, answerSize: body.answerSize)
    return bytes == answer.bytes(count: Int(body.answerSize))
  }

  // MARK: Requests and pushes of servers

  /// Sends a request from a server to one of its clients, if it has any.
  private func requestFromClient(_ request: ScenarioPlan.Request) async {
    guard let (peer, run) = await peer(request.key) else { return }
    let asked = Asked(request)
    oracle.requests.asked(request.key)
    let task = run.spawn { [self] in
      let result = await Self.result { () async throws(LongLinkError) in
        try await peer.request(asked.type, asked.bytes, options: asked.options)
      }
      if run.isAlive {
        oracle.requests.ended(request.key, result, isOwnAnswer: isAnswer(result, to: asked.body))
      } else {
        oracle.requests.forgot(request.key)
      }
    }
    cancel(after: request.cancelAfter) { task.cancel() }
  }

  /// Picks a connection of a running server; nil if the picked server has none or is paused.
  func peer(_ choice: UInt64) async -> (Peer, SimulatedProcess.Run)? {
    let index = Int(choice % UInt64(plan.servers.count))
    let process = processes.withLock { $0[index] }
    guard let server = server(index), let run = process.current, !run.machine.isPaused else {
      return nil
    }
    let peers = await server.peers()
    guard run.isAlive, !peers.isEmpty else { return nil }
    return (peers[Int(choice / 7 % UInt64(peers.count))], run)
  }

  private func send(_ push: ScenarioPlan.PushPlan, _ number: UInt64) {
    simulation.spawn { [self] in
      if push.isFromServer {
        guard let (peer, run) = await peer(number) else { return }
        let broadcast = ScenarioBody(key: number).bytes(count: 0)
        let index = Int(number % UInt64(plan.servers.count))
        _ = try? await server(index)?.broadcast(Kind.broadcast, broadcast)
        // Pushes are in order only on one connection, so the peer must still have the same one.
        guard run.isAlive, peer.isCurrent else { return }
        let server = UInt32(number % UInt64(plan.servers.count))
        let body = ScenarioBody(key: number, answerSize: UInt32(peer.connectionID), delay: server)
        let bytes = body.bytes(count: push.size)
        pushes.sent(number, size: bytes.count)
        // A push that throws was not sent, and is not expected to arrive.
        _ = try? await peer.push(Kind.push, bytes)
      } else {
        let bytes = ScenarioBody(key: number).bytes(count: push.size)
        pushes.sent(number, size: bytes.count)
        _ = try? await clients[push.client].push(Kind.push, bytes)
      }
    }
  }
}

/// A request in the form that the client takes.
private struct Asked: Sendable {
  let type: MessageType
  /// The body of the request; nil for a request without one.
  let body: ScenarioBody?
  let bytes: [UInt8]
  let options: RequestOptions

  init(_ request: ScenarioPlan.Request) {
    var delay: Duration = .zero
    let type: MessageType
    switch request.work {
    case .inline: type = ScenarioStage.Kind.inline
    case .delayed(let time): (type, delay) = (ScenarioStage.Kind.delayed, time)
    case .rejecting: type = ScenarioStage.Kind.rejecting
    case .hanging: type = ScenarioStage.Kind.hanging
    case .missing: type = ScenarioStage.Kind.missing
    }
    options = RequestOptions(
      timeout: request.deadline,
      cancelsAtPeer: request.notifiesCancel,
      waitsForConnection: request.waits,
      priority: request.priority,
      idempotencyKey: request.isIdempotent ? ScenarioBody(key: request.key).bytes(count: 0) : [],
      retry: request.isIdempotent ? .idempotent : .ifSafe,
      isOrdered: request.isOrdered)
    guard request.size > 0 else {
      self.type = ScenarioStage.Kind.empty(request.key)
      (body, bytes) = (nil, [])
      return
    }
    self.type = type
    let body = ScenarioBody(
      key: request.key, answerSize: UInt32(request.answerSize), delay: delay.wireMilliseconds)
    self.body = body
    bytes = body.bytes(count: request.size)
  }
}
