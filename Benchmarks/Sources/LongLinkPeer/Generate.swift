// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BenchSupport
import Foundation
import LongLink
import Logging

/// Keeps requests in flight, in one of several styles of calling.
struct Generate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "load")

  enum Style: String, CaseIterable, ExpressibleByArgument {
    /// Tasks on the client's event loop.
    case loop
    /// Tasks on the global pool.
    case pool
    /// Completion handlers on the client's event loop.
    case callbacks
    /// A blocked thread for each request in flight.
    case blocking
  }

  @OptionGroup var load: Load
  @Option(help: "The style in which requests are made.")
  var style = Style.loop
  @Flag(help: "Send and receive a message of five fields instead of bytes.")
  var typed = false
  @Option(help: "Timers that live beside the requests.")
  var timers = 0
  @Option(help: "Microseconds for which the loop spins before it sleeps.")
  var busyPoll = 0
  @Flag(help: "Secure the connections with TLS.")
  var tls = false
  @Flag(help: "Ask that each request runs once.")
  var once = false

  func validate() throws {
    guard !typed || style == .loop || style == .pool else {
      throw ValidationError("Only the styles with tasks support typed requests.")
    }
    guard !once || !typed && (style == .loop || style == .pool) else {
      throw ValidationError("Only requests of bytes in tasks run once.")
    }
  }

  func run() async throws {
    let loop = try EventLoop(name: "bench", busyPoll: .microseconds(busyPoll))
    let security = try Secured.client(tls)
    var clients: [LongLinkClient] = []
    for _ in 0..<load.connections {
      var configuration = ClientConfiguration(servers: [.host("127.0.0.1", port: load.port)])
      configuration.timeouts.request = .seconds(60)
      configuration.limits.maxWaiting = max(configuration.limits.maxWaiting, load.inFlight)
      configuration.logger.logLevel = .critical
      configuration.security = security
      let client = try LongLinkClient(configuration, on: loop)
      try await client.connect()
      clients.append(client)
    }
    await setTimers(on: loop)
    let meter = Meter(load)
    for (index, lane) in meter.lanes.enumerated() {
      begin(clients[index / load.inFlight], lane, on: loop)
    }
    let load = load
    let outcome = await withCheckedContinuation { continuation in
      Thread.detachNewThread { continuation.resume(returning: meter.measure(load)) }
    }
    try outcome.print()
    Foundation.exit(0)
  }

  /// Starts tasks that sleep for longer than the run, and returns when they sleep.
  private func setTimers(on loop: EventLoop) async {
    for number in 0..<timers {
      Task(executorPreference: loop) {
        try? await loop.sleep(for: .seconds(3_600) + .milliseconds(number % 600_000))
      }
    }
    // When this runs, all jobs sent to the loop before it have run.
    await Task(executorPreference: loop) {}.value
  }

  private func begin(_ client: LongLinkClient, _ lane: Lane, on loop: EventLoop) {
    switch style {
    case .loop:
      converse(client, lane, on: loop)
    case .pool:
      converse(client, lane, on: globalConcurrentExecutor)
    case .callbacks:
      call(client, lane)
    case .blocking:
      Thread.detachNewThread { block(client, lane) }
    }
  }

  private func converse(
    _ client: LongLinkClient, _ lane: Lane, on executor: any TaskExecutor
  ) {
    let isTyped = typed
    let options = once ? RequestOptions(retry: .once) : RequestOptions()
    Task(executorPreference: executor) {
      do {
        if isTyped {
          try await exchangeQuotes(client, lane)
        } else {
          try await exchangeBytes(client, lane, options)
        }
      } catch {
        Meter.fail("\(error)")
      }
    }
  }
}

private func exchangeBytes(
  _ client: LongLinkClient, _ lane: Lane, _ options: RequestOptions
) async throws {
  while true {
    let request = lane.begin()
    let answer = try await client.request(1, lane.body, options: options)
    guard answer.withUnsafeBytes({ lane.answered(request, with: $0) }) else { return }
  }
}

/// Sends a quote, and expects the same quote back.
let quotes = RPCMethod<Quote, Quote>(2)

private func exchangeQuotes(_ client: LongLinkClient, _ lane: Lane) async throws {
  let quote = Quote(number: lane.number)
  while true {
    let request = lane.begin()
    let answer = try await client.request(quotes, quote)
    let isRight = request.isCompared ? answer == quote : answer.number == quote.number
    guard lane.answered(request, isRight: isRight) else { return }
  }
}

private func block(_ client: LongLinkClient, _ lane: Lane) {
  while true {
    let request = lane.begin()
    do {
      let answer = try client.requestBlocking(1, lane.body)
      guard answer.withUnsafeBytes({ lane.answered(request, with: $0) }) else { return }
    } catch {
      Meter.fail("\(error)")
    }
  }
}

/// Sends a request, and the next one after its end.
private func call(_ client: LongLinkClient, _ lane: Lane) {
  let request = lane.begin()
  client.request(1, lane.body, on: .connectionLoop) { result in
    switch result {
    case .success(let answer):
      if answer.withUnsafeBytes({ lane.answered(request, with: $0) }) { call(client, lane) }
    case .failure(let error):
      Meter.fail("\(error)")
    }
  }
}
