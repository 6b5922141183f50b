// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCommandSupport
import LongLinkDemoMessages

/// The steps with a healthy connection.
extension Demo {
  func showRequests(_ client: LongLinkClient) async throws {
    try timeline.chapter("Typed requests, and every kind of response")
    let tick = Tick(number: 42)
    let echo = try await client.request(RPCMethod<Tick, Tick>(DemoRoutes.echo), tick)
    try timeline.check(
      echo == tick, "Echo returned Tick(number: 42) unchanged", otherwise: "it is \(echo)")

    let application = client.submit(
      DemoRoutes.fail, FailRequest(code: 1042, detail: "no more tickets"))
    let rejected = try await failure(of: application, "Fail")
    try timeline.check(
      rejected, is: .rejected, .answered, "Fail with the application's code 1042")
    try timeline.check(
      rejected.response == 1042 && rejected.body == Array("no more tickets".utf8),
      "its code and detail arrived", otherwise: "\(rejected)")

    let unknown = try await failure(of: client.submit(99, EmptyBody()), "message type 99")
    try timeline.check(unknown, is: .rejected, .refused, "message type 99, which has no handler")
  }

  func showOrder(_ client: LongLinkClient) async throws {
    try timeline.chapter("Eight concurrent requests on one connection; the longest is sent first")
    let times = stride(from: 800, through: 100, by: -100).map(Duration.milliseconds)
    let begin = ContinuousClock.now
    let tasks = times.map { (time: $0, task: startSleep(client, $0)) }
    let answered = try await withThrowingTaskGroup(of: Duration.self) { group in
      for (time, task) in tasks {
        group.addTask(executorPreference: client.loop) {
          _ = try await task.value
          return time
        }
      }
      var order: [Duration] = []
      for try await time in group {
        order.append(time)
        try timeline.tell("Sleep of \(time.inSeconds) answered")
      }
      return order
    }
    let total = ContinuousClock.now - begin
    try timeline.check(
      answered == times.reversed(), "they were answered in the opposite order",
      otherwise: "\(answered)")
    let sum = times.reduce(.zero, +)
    try timeline.check(
      total < sum, "all took \(total.inSeconds); one by one they take \(sum.inSeconds)",
      otherwise: "they did not run concurrently")
  }

  func showPushes(_ client: LongLinkClient) async throws {
    try timeline.chapter("The server pushes five messages, 100 ms apart")
    let type: MessageType = 77
    let pushes = client.pushes(of: type)
    _ = try await client.request(
      DemoRoutes.ticks,
      TicksRequest(count: 5, intervalMilliseconds: 100, messageType: type.rawValue))
    try timeline.tell("Ticks answered")
    var numbers: [UInt64] = []
    for await push in pushes {
      let tick = try Tick(copying: push.body)
      try timeline.tell("push of type \(push.type): Tick \(tick.number)")
      numbers.append(tick.number)
      if numbers.count == 5 { break }
    }
    try timeline.check(
      numbers == [1, 2, 3, 4, 5], "all arrived, in order", otherwise: "\(numbers)")
  }

  func showCancel(_ client: LongLinkClient) async throws {
    try timeline.chapter("A request is cancelled, and the server stops its work")
    let before = try await stats(client)
    let task = startSleep(
      client, .seconds(60),
      options: RequestOptions(timeout: .seconds(90)))
    // A request for stats counts itself.
    let during = try await stats(client) { $0.requestsRunning == 2 }
    try timeline.check(
      during.requestsRunning == 2, "a Sleep of 60 s runs: Stats counts it and itself as running",
      otherwise: "\(during)")
    task.cancel()
    let error = try await failure(of: task, "the Sleep of 60 s")
    try timeline.check(error, is: .cancelled, .sent, "it was cancelled")
    let after = try await stats(client) { $0.requestsRunning == 1 }
    try timeline.check(
      after.requestsRunning == 1 && after.requestsCancelled == before.requestsCancelled + 1,
      "Stats: running \(during.requestsRunning) -> \(after.requestsRunning), cancelled "
        + "\(before.requestsCancelled) -> \(after.requestsCancelled)",
      otherwise: "\(after)")
  }

  func showDeadline(_ client: LongLinkClient) async throws {
    try timeline.chapter("A timeout of 300 ms for a Sleep of 5 s")
    let begin = ContinuousClock.now
    let task = startSleep(
      client, .seconds(5),
      options: RequestOptions(timeout: .milliseconds(300)))
    let error = try await failure(of: task, "the Sleep of 5 s")
    let took = ContinuousClock.now - begin
    try timeline.check(error, is: .deadlineExceeded, .sent, "it ended")
    try timeline.check(
      took >= .milliseconds(299) && took < .seconds(5), "it took \(took.inMilliseconds)",
      otherwise: "the deadline was not kept")
  }
}
