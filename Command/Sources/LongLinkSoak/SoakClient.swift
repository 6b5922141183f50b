// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLink
import LongLinkTesting
import Synchronization

/// The report of a process on its clients, sent every half second.
struct SoakReport: Codable, Sendable {
  var clients = 0
  var connected = 0
  /// Requests that have begun and not yet ended.
  var open = 0
  var started = 0
  var ended = 0
  /// Requests that were not made because too many were open.
  var heldBack = 0
  var connects: UInt64 = 0
  var failedAttempts: UInt64 = 0
  /// Connections on which a rule of the protocol was broken.
  var violations: UInt64 = 0
  /// Credentials that were shown.
  var credentials = 0
  var streams = SoakStreams()

  static func += (lhs: inout SoakReport, rhs: SoakReport) {
    lhs.clients += rhs.clients
    lhs.connected += rhs.connected
    lhs.open += rhs.open
    lhs.started += rhs.started
    lhs.ended += rhs.ended
    lhs.heldBack += rhs.heldBack
    lhs.connects += rhs.connects
    lhs.failedAttempts += rhs.failedAttempts
    lhs.violations += rhs.violations
    lhs.credentials += rhs.credentials
    lhs.streams += rhs.streams
  }
}

/// One client under constant, bounded load, which notes its requests and their outcomes.
actor SoakClient {
  nonisolated let loop: EventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

  private let client: LongLinkClient
  private let ledger: SoakLedger
  private var generator: SeededGenerator
  private var nextKey: UInt64
  private var isStopped = false
  private var open = 0
  private var started = 0
  private var ended = 0
  private var heldBack = 0
  private var streams = SoakStreams()
  private let stretches = SoakStretches()
  /// How often the client was asked for its credential.
  private let credentials = Counter()

  private static let mostOpen = 16
  /// How often its network changes, as a share of the pauses between its requests.
  private static let moves = 0.02

  private final class Counter: Sendable {
    private let storage = Atomic(0)

    var value: Int { storage.load(ordering: .relaxed) }
    func add() { storage.add(1, ordering: .relaxed) }
  }

  /// `number` identifies the client within the soak.
  init(
    number: Int, seed: UInt64, servers: [Endpoint], ledger: SoakLedger, on loop: EventLoop
  ) throws {
    self.loop = loop
    self.ledger = ledger
    generator = SeededGenerator(seed: seed &+ UInt64(number) &* 0x9E37_79B9)
    nextKey = UInt64(number + 1) << 32
    var configuration = ClientConfiguration(servers: servers)
    configuration.timeouts.request = SoakTiming.deadline
    configuration.timeouts.connect = SoakTiming.connectTimeout
    configuration.heartbeat = SoakTiming.heartbeat
    configuration.reconnect = SoakTiming.reconnect
    configuration.logger.logLevel = .critical
    configuration.identity.credential = { [credentials] in
      credentials.add()
      return Array("client \(number)".utf8)
    }
    // The test of lost packets runs servers at an address that is not the loopback's.
    configuration.identity.sendsCredentialUnencrypted = true
    client = try LongLinkClient(configuration, on: loop)
    client.onPush(SoakType.news) { [weak client, stretches, number = UInt32(number)] push in
      guard let client, let key = SoakRecord.key(in: push.body) else { return }
      let stretch = stretches.number(in: client.state) ?? 0
      ledger.append(SoakRecord(key: key, .received(client: number, stretch: stretch)))
    }
  }

  /// Makes `rate` requests per second, on average, until it is stopped.
  func run(rate: Double) async {
    Task(executorPreference: loop) { [client, stretches] in
      for await state in client.states() { stretches.begin(in: state) }
    }
    let watching = Task(executorPreference: loop) { await self.watch() }
    defer { watching.cancel() }
    while !isStopped {
      let pause = Double.random(in: 0...2 / rate, using: &generator)
      guard (try? await loop.sleep(for: .seconds(pause))) != nil, !isStopped else { return }
      if Double.random(in: 0..<1, using: &generator) < SoakClient.moves { client.pathChanged() }
      if open < SoakClient.mostOpen { await begin() } else { heldBack += 1 }
    }
  }

  private func begin() async {
    let kind = SoakKind.draw(using: &generator)
    let key = nextKey
    nextKey += 1
    started += 1
    open += 1
    let body = kind.body(key: key, using: &generator)
    ledger.append(SoakRecord(key: key, .started(kind)))
    guard kind != .push else { return await push(key, body) }
    let options = kind.options(key: key, using: &generator)
    guard !kind.isPayment else {
      Task { await self.pay(kind, key, body, options) }
      return
    }
    let task = client.request(kind.type, body, options: options, on: .connectionLoop) { result in
      let outcome = SoakClient.outcome(of: result, kind, body)
      self.assumeIsolated { $0.recordEnd(of: key, outcome) }
    }
    guard kind == .cancelled else { return }
    let pause = Duration.milliseconds(Int.random(in: 0...60, using: &generator))
    Task(executorPreference: loop) { [loop] in
      try? await loop.sleep(for: pause)
      task.cancel()
    }
  }

  private func push(_ key: UInt64, _ body: [UInt8]) async {
    do {
      try await client.push(SoakType.push, body)
      recordEnd(of: key, .succeeded)
    } catch {
      recordEnd(of: key, SoakOutcome(error.delivery))
    }
  }

  /// Makes a payment. One in three has a ticket, under which it is made again twice.
  private func pay(
    _ kind: SoakKind, _ key: UInt64, _ body: [UInt8], _ options: RequestOptions
  ) async {
    var options = options
    let ticket = OnceTicket(key: options.idempotencyKey)
    if Int.random(in: 0..<3, using: &generator) == 0 { options.ticket = ticket }
    var outcome = await payOnce(kind, key, body, options)
    for _ in 0..<2 where options.ticket != nil && !isStopped {
      let pause = Duration.milliseconds(Int.random(in: 0...1_000, using: &generator))
      try? await loop.sleep(for: pause)
      let next = await payOnce(kind, key, body, options)
      let isNew = outcome == .succeeded && next == .succeeded && ticket?.isReplayed == false
      outcome = isNew ? .unexpected : outcome.joined(next)
    }
    recordEnd(of: key, outcome)
  }

  private func payOnce(
    _ kind: SoakKind, _ key: UInt64, _ body: [UInt8], _ options: RequestOptions
  ) async -> SoakOutcome {
    do {
      let answer = try await client.request(kind.type, body, options: options)
      guard let receipt = SoakPayments.receipt(in: answer) else { return .unexpected }
      ledger.append(SoakRecord(key: key, .answered(receipt)))
      return .succeeded
    } catch {
      return SoakClient.outcome(of: .failure(error), kind, body)
    }
  }

  private func recordEnd(of key: UInt64, _ outcome: SoakOutcome) {
    open -= 1
    ended += 1
    ledger.append(SoakRecord(key: key, .ended(outcome)))
  }

  private static func outcome(
    of result: Result<[UInt8], LongLinkError>, _ kind: SoakKind, _ body: [UInt8]
  ) -> SoakOutcome {
    switch result {
    case .success(let reply):
      return reply == body ? .succeeded : .unexpected
    case .failure(let error):
      guard error.delivery == .answered else { return SoakOutcome(error.delivery) }
      let isRight =
        kind == .rejected && error.response == SoakType.rejection && error.body == body
      // A handler that was cancelled or reached its deadline may respond so instead.
      let isEnding = error.response == .cancelled || error.response == .deadlinePassed
      return isRight || isEnding ? .answered : .unexpected
    }
  }

  /// Reads a stream that comes back, for as long as the client runs.
  private func watch() async {
    let stream = client.stream(
      SoakType.watch, resuming: { $0 ?? SoakRecord.bytes(of: 0) },
      retryingWhen: { $0.response == SoakType.expired })
    do {
      for try await event in stream.events {
        switch event {
        case .item(let item): streams.took(SoakRecord.key(in: item))
        case .resumed(let error, _): streams.resumed(after: error)
        }
      }
      streams.ended += 1
    } catch {
      if !isStopped { streams.ended += 1 }
    }
  }

  /// Makes no more requests; open ones continue.
  func stop() { isStopped = true }

  func close() async { await client.close() }

  var report: SoakReport {
    get async {
      let counters = await client.counters()
      var report = SoakReport(
        clients: 1, open: open, started: started, ended: ended, heldBack: heldBack,
        connects: counters.connects, failedAttempts: counters.failedAttempts,
        violations: counters.violations.values.reduce(0, +), credentials: credentials.value,
        streams: streams)
      if case .connected = client.state { report.connected = 1 }
      return report
    }
  }
}

extension SoakOutcome {
  init(_ delivery: Delivery) {
    switch delivery {
    case .notSent: self = .notSent
    case .sent: self = .sent
    case .refused: self = .refused
    case .answered: self = .answered
    }
  }
}
