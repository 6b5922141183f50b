// SPDX-License-Identifier: Apache-2.0

internal import LongLink
internal import LongLinkDriver
internal import LongLinkCore
internal import LongLinkServer
internal import LongLinkTesting
internal import LongLinkTransport
internal import Synchronization

/// Opens the streams of a scenario's plan, and lets the oracle watch them.
struct ScenarioStreams: Sendable {
  let stage: ScenarioStage

  private var plan: ScenarioPlan { stage.plan }
  private var oracle: Oracle { stage.oracle }
  private var simulation: Simulation { stage.simulation }

  /// Opens every stream of the plan at its time.
  func open() async throws {
    for plan in plan.streams {
      let rest = plan.at - stage.elapsed
      if rest > .zero { try await simulation.sleep(for: rest) }
      if plan.isFromServer {
        await openFromServer(plan)
      } else {
        let client = stage.clients[plan.client]
        let loop = plan.isOnLoop ? client.loop : simulation.mainLoop
        let task = simulation.spawn(on: loop) {
          await run(
            plan, client, client.loop, windows: client.configuration.limits.streamWindows,
            isAlive: { true })
        }
        cancelStream(after: plan.cancelAfter) { task.cancel() }
      }
    }
  }

  private func openFromServer(_ plan: StreamPlan) async {
    guard let (peer, process) = await stage.peer(plan.key) else { return }
    let windows = self.plan.serverWindows[Int(plan.key % UInt64(self.plan.servers.count))]
    let task = process.spawn {
      await run(
        plan, peer, process.loop, windows: windows, isAlive: { process.isAlive })
      if !process.isAlive { oracle.requests.forgot(plan.key) }
    }
    cancelStream(after: plan.cancelAfter) { task.cancel() }
  }

  private func cancelStream(after time: Duration?, _ cancel: @escaping @Sendable () -> Void) {
    guard let time else { return }
    simulation.spawn { [simulation] in
      try await simulation.sleep(for: time)
      cancel()
    }
  }

  /// Runs the requester's side of a stream, and records its outcome.
  @discardableResult
  private func run(
    _ plan: StreamPlan, _ sender: some RequestSender, _ loop: EventLoop,
    windows: StreamWindows, isAlive: @escaping @Sendable () -> Bool
  ) async -> Result<[UInt8], LongLinkError>? {
    oracle.requests.asked(
      plan.key, deadline: plan.isPrompt ? plan.deadline : nil, isStream: true)
    oracle.items.opened(plan.key)
    // On a short link, the network buffers any number of bytes.
    let hasWindows = !stage.scenario.profile.hasShortLinks
    if hasWindows, plan.shape.contains(.responseItems) {
      oracle.items.setWindow(
        plan.key, from: .responder, bytes: plan.window ?? windows.largest)
    }
    if hasWindows, plan.shape.contains(.requestItems) {
      oracle.items.setWindow(plan.key, from: .requester, bytes: largestWindow)
    }
    defer { oracle.items.closed(plan.key) }
    let requester = StreamRequester(
      plan: plan, ledger: oracle.items, loop: loop, isAlive: isAlive)
    let result = await requester.run(sender)
    guard isAlive(), let result else {
      oracle.requests.forgot(plan.key)
      return result
    }
    oracle.requests.ended(plan.key, result, isOwnAnswer: isAnswer(result, to: plan))
    return result
  }

  /// The largest window of all processes, any of which may be the responder.
  private var largestWindow: Int {
    (plan.serverWindows + plan.clientWindows).map(\.largest).max() ?? 0
  }

  private func isAnswer(_ result: Result<[UInt8], LongLinkError>, to plan: StreamPlan) -> Bool {
    guard case .success(let body) = result else { return true }
    return body == plan.body.bytes(count: 16)
  }

  // MARK: After the faults

  /// Exchanges items in both directions with a client's server. This has to succeed: no earlier
  /// stream may have left anything behind that hinders it.
  func openLast(_ index: Int, _ client: LongLinkClient, within limit: Duration) async throws {
    let end = stage.elapsed + limit
    var key = StreamPlan.lastKey + UInt64(index) + 1
    while true {
      let result = await run(
        .last(key), client, client.loop, windows: client.configuration.limits.streamWindows,
        isAlive: { true })
      guard case .failure(let error) = result else { return }
      // Streams that still run may take all places or windows, until they end.
      let mayPass = error.code == .overloaded || error.response == .overloaded
      guard mayPass, stage.elapsed < end else {
        oracle.found(
          .streamsGoOn, "a stream of client-\(index) failed after the faults: \(error)")
        return
      }
      try await simulation.sleep(for: .milliseconds(500))
      key += 10
    }
  }

  /// Waits for all streams to end. While the network is whole, each of them has to go on.
  func awaitAll() async throws {
    let patience = Duration.seconds(90)
    let gateways = plan.servers.map(\.gateway)
    let start = simulation.now
    while !oracle.items.open.isEmpty {
      // A short link has no heartbeat: a reader without a timeout would wait for ever.
      simulation.networkState { $0.loseForgotten(to: gateways) }
      // Before `start`, the network may not have been whole.
      let idle = simulation.now - max(start, oracle.items.lastEvent)
      guard idle < patience.clampedNanoseconds else { break }
      try await simulation.sleep(for: .milliseconds(500))
    }
    for key in oracle.items.open {
      oracle.found(
        .streamsGoOn,
        "stream \(key) has made no progress for \(patience): \(oracle.items.text(key))")
    }
  }
}

/// The requester's side of a scenario's stream.
private struct StreamRequester: Sendable {
  let plan: StreamPlan
  let ledger: ItemLedger
  /// The loop on which the requester's connection is.
  let loop: EventLoop
  let isAlive: @Sendable () -> Bool

  private var options: StreamOptions {
    StreamOptions(
      timeout: plan.deadline, itemTimeout: plan.itemTimeout, window: plan.window,
      waitsForConnection: plan.waits, priority: plan.priority)
  }

  /// Runs the stream; returns nil if the requester gave it up by the plan.
  func run(_ sender: some RequestSender) async -> Result<[UInt8], LongLinkError>? {
    let ends = StreamEnds(
      plan: plan, side: .requester, ledger: ledger, clock: loop.clock, isAlive: isAlive)
    let body = plan.body.bytes(count: 16)
    do {
      switch plan.shape {
      case .responseItems where plan.usesCallbacks:
        return await call(sender, body)
      case .responseItems:
        let stream = sender.stream(plan.type, body, options: options)
        var iterator = stream.makeAsyncIterator()
        let isWhole = try await ends.readAll { () async throws(LongLinkError) in
          try await iterator.next()
        }
        // A reader that stops gives the stream up when the iterator is released.
        return isWhole ? .success(stream.response ?? []) : nil
      case .requestItems:
        return .success(
          try await sender.sendItems(plan.type, body, options: options) { writer in
            try await ends.writeAll(writer)
            ends.finished()
          })
      default:
        return .success(
          try await sender.exchange(plan.type, body, options: options) { items, writer in
            try await ends.readAndWrite(items, writer)
            ends.finished()
            ledger.dropsRest(plan.key, from: .responder)
          })
      }
    } catch let error as LongLinkError {
      return .failure(error)
    } catch {
      return nil
    }
  }

  /// Opens the stream with callbacks: a function takes each of its items.
  private func call(
    _ sender: some RequestSender, _ body: [UInt8]
  ) async -> Result<[UInt8], LongLinkError> {
    let handle = Mutex<RequestHandle?>(nil)
    let count = Mutex(0)
    let stop = plan.responseItems.readerStopsAfter
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let made = sender.stream(
          plan.type, body, options: options, on: .connectionLoop,
          onItem: { item, next in
            if isAlive() { ledger.read(plan.key, from: .responder, item) }
            let number = count.withLock { count in
              count += 1
              return count
            }
            if number == stop { handle.withLock { $0?.cancel() } }
            goOn(next)
          },
          completion: { result in
            if isAlive() { noteEnd(result) }
            continuation.resume(returning: result)
          })
        handle.withLock { $0 = made }
        if stop == 0 || Task.isCancelled { made.cancel() }
      }
    } onCancel: {
      handle.withLock { $0?.cancel() }
    }
  }

  private func noteEnd(_ result: Result<[UInt8], LongLinkError>) {
    switch result {
    case .success: ledger.readEnd(plan.key, from: .responder)
    case .failure(let error): ledger.readError(plan.key, from: .responder, error)
    }
  }

  /// Asks for the next item, after the reader's pause.
  private func goOn(_ next: @escaping @Sendable () -> Void) {
    guard plan.responseItems.readPause > .zero else { return next() }
    Task(executorPreference: loop) {
      try? await loop.clock.sleep(for: plan.responseItems.readPause)
      next()
    }
  }
}
