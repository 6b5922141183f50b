// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkCommandSupport
import LongLinkDemoMessages

/// The steps in which the server is killed and frozen.
extension Demo {
  func showKill(_ client: LongLinkClient, port: UInt16) async throws {
    try timeline.chapter("The server is killed with four requests in flight")
    let patient = RequestOptions(timeout: .seconds(20))
    let tasks = (1...4).map { _ in startSleep(client, .seconds(15), options: patient) }
    let running = try await stats(client) { $0.requestsRunning == 5 }
    try timeline.check(
      running.requestsRunning == 5, "four Sleeps of 15 s run", otherwise: "\(running)")
    let killed = try process
    killed.send(SIGKILL)
    try timeline.tell("SIGKILL to process \(killed.number)")
    for task in tasks {
      let error = try await failure(of: task, "a Sleep of 15 s")
      try timeline.check(
        error, is: .connectionLost, .sent,
        "request \(task.serial ?? 0) failed, and may have run")
    }
    let hasty = client.submit(
      DemoRoutes.echo, Array("now".utf8), options: RequestOptions(waitsForConnection: false))
    let refused = try await failure(of: hasty, "a request without a server")
    try timeline.check(
      (refused.code == .notConnected || refused.code == .connectFailed)
        && refused.delivery == .notSent,
      "a request that does not wait failed: \(refused.code), delivery notSent: it did not run",
      otherwise: "\(refused)")
    let waiting = client.submit(DemoRoutes.echo, Array("later".utf8), options: patient)
    try timeline.tell("a request that waits for the server is made, with a timeout of 20 s")
    _ = await killed.exitCode()

    try timeline.chapter("The server comes back, and the client reconnects automatically")
    let began = ContinuousClock.now
    _ = try await startServer(port: port)
    let outcome = await outcome(of: waiting)
    try timeline.check(
      outcome == .success(Array("later".utf8)),
      "the request that waited was answered \((ContinuousClock.now - began).inSeconds) "
        + "after the start", otherwise: "\(outcome)")
    let connects = await client.counters().connects
    try timeline.check(
      connects == 2, "the client has connected twice, the second time automatically",
      otherwise: "it has connected \(connects) times")
  }

  func showFreeze(_ client: LongLinkClient) async throws {
    let bound = Demo.heartbeat.interval + Demo.heartbeat.timeout
    try timeline.chapter(
      "The server freezes; the heartbeat (1 s + 0.5 s) notices within \(bound.inSeconds)")
    let task = startSleep(client, .seconds(15), options: RequestOptions(timeout: .seconds(20)))
    let running = try await stats(client) { $0.requestsRunning == 2 }
    try timeline.check(
      running.requestsRunning == 2, "a Sleep of 15 s runs", otherwise: "\(running)")
    let frozen = try process
    frozen.send(SIGSTOP)
    let begin = ContinuousClock.now
    try timeline.tell("SIGSTOP to process \(frozen.number): its sockets stay open, it is silent")
    let error = try await failure(of: task, "a request to a frozen server")
    let took = ContinuousClock.now - begin
    try timeline.check(error, is: .connectionLost, .sent, "the request failed")
    try timeline.check(
      error.closeReason == .heartbeatLost, "the reason is the lost heartbeat",
      otherwise: "\(error)")
    // A busy machine may run this process late; the heartbeat itself is exact.
    try timeline.check(
      took <= bound + .seconds(1),
      "it was noticed after \(took.inSeconds); the bound is \(bound.inSeconds)",
      otherwise: "it was noticed too late")
    let waiting = client.submit(
      DemoRoutes.echo, Array("again".utf8), options: RequestOptions(timeout: .seconds(20)))
    frozen.send(SIGCONT)
    try timeline.tell("SIGCONT to process \(frozen.number)")
    let outcome = await outcome(of: waiting)
    try timeline.check(
      outcome == .success(Array("again".utf8)),
      "the client reconnected automatically, and was answered", otherwise: "\(outcome)")
  }

  func showEnd(_ client: LongLinkClient) async throws {
    try timeline.chapter("The end")
    let last = try await stats(client)
    try timeline.check(
      last.protocolViolations == 0, "neither side broke a protocol rule", otherwise: "\(last)")
    let counters = await client.counters().requests
    let ended =
      counters.succeeded + counters.rejected + counters.cancelled + counters.expired
      + counters.lost + counters.failedLocally
    try timeline.check(
      ended == counters.submitted, "each of \(counters.submitted) requests ended exactly once",
      otherwise: "\(counters)")
    await client.close(within: .seconds(1))
    let server = try process
    server.send(SIGTERM)
    let code = await server.exitCode()
    try timeline.check(
      code == 0, "the server drained after SIGTERM and ended with exit code 0",
      otherwise: "it ended with \(code.map(String.init) ?? "a signal")")
  }
}
