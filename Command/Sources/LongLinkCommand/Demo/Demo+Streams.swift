// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCommandSupport
import LongLinkDemoMessages

/// The steps with streams.
extension Demo {
  func showStream(_ client: LongLinkClient) async throws {
    try timeline.chapter("A stream: the items of one response, 100 ms apart")
    let stream = client.stream(
      DemoRoutes.count, CountRequest(count: 5, intervalMilliseconds: 100))
    var numbers: [UInt64] = []
    for try await item in stream {
      let tick = try Tick(copying: item)
      try timeline.tell("item: Tick \(tick.number)")
      numbers.append(tick.number)
    }
    try timeline.check(
      numbers == [1, 2, 3, 4, 5] && stream.response == [],
      "all arrived, in order, and then the response", otherwise: "\(numbers)")

    let lines = ["one", "two", "three"]
    let bytes = try await client.sendItems(DemoRoutes.sum, EmptyBody()) { writer in
      for line in lines { try await writer.write(Array(line.utf8)) }
    }
    let sum = try SumReply(copying: bytes)
    try timeline.check(
      sum.items == 3 && sum.bytes == 11, "Sum counted three items of ours, with 11 bytes",
      otherwise: "\(sum)")
  }

  func showStop(_ client: LongLinkClient) async throws {
    try timeline.chapter("A reader that stops makes the server wait, and one that leaves ends it")
    let before = try await stats(client)
    let arrived = await client.counters().connections.itemsReceived
    // Without end, as far as the demo is concerned.
    var items: Items<[UInt8]>? = client.stream(
      DemoRoutes.count, CountRequest(count: .max, itemBytes: 1_000)
    ).makeAsyncIterator()
    _ = try await items?.next()
    let echo = try await client.request(DemoRoutes.echo, Array("meanwhile".utf8))
    try timeline.check(
      echo == Array("meanwhile".utf8), "one item was read; other requests pass those that wait",
      otherwise: "\(echo)")
    let received = await client.counters().connections.itemsReceived - arrived
    // 65,536 bytes, with a header of 16 bytes for each item.
    try timeline.check(
      received <= 64, "no more than a window of items has come: \(received)",
      otherwise: "\(received)")
    var count = 1
    while count < 300, try await items?.next() != nil { count += 1 }
    try timeline.check(
      count == 300, "300 items were read, and the server goes on", otherwise: "\(count)")
    items = nil
    let after = try await stats(client) { $0.requestsRunning == 1 }
    try timeline.check(
      after.requestsRunning == 1 && after.requestsCancelled == before.requestsCancelled + 1,
      "the reader left: the server's handler has ended", otherwise: "\(after)")
  }

  func showErrorInBand(_ client: LongLinkClient) async throws {
    try timeline.chapter("A stream fails after three items of ten: an error in band")
    let request = CountRequest(
      count: 10, failAfter: 3, failCode: 1042, failDetail: "no more tickets")
    var count = 0
    do {
      for try await _ in client.stream(DemoRoutes.count, request) { count += 1 }
      throw DemoFailure("the stream ended without its error")
    } catch let error as LongLinkError {
      try timeline.check(
        error, is: .rejected, .answered, "the error came after \(count) items")
      try timeline.check(
        count == 3 && error.itemsReceived == 3 && error.response == 1042
          && error.body == Array("no more tickets".utf8),
        "its code, its detail and the number of items before it are known", otherwise: "\(error)")
    }
  }
}
