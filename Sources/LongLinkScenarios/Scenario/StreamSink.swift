// SPDX-License-Identifier: Apache-2.0

internal import LongLinkDriver
internal import LongLinkCore
internal import LongLinkServer
internal import LongLinkTransport
internal import Synchronization

/// Makes the handlers of a scenario's streams, for one process.
struct StreamSink: Sendable {
  typealias Handler =
    @Sendable (InboundRequest, Items<[UInt8]>, ItemWriter<[UInt8]>) async throws ->
    any BodyEncodable & Sendable

  let stage: ScenarioStage
  /// The loop of the handlers that do not run on their connection's loop.
  let loop: EventLoop
  /// Whether the process has not crashed: what its handlers still do after a crash does not count.
  let isAlive: @Sendable () -> Bool

  private static let shapes: [StreamShape] = [
    .requestItems, .responseItems, [.requestItems, .responseItems],
  ]

  func handleAll(
    _ set: (MessageType, StreamShape, HandlerPlacement, @escaping Handler) -> Void
  ) {
    for shape in Self.shapes {
      for isElsewhere in [false, true] {
        let placement: HandlerPlacement = isElsewhere ? .executor(loop) : .connectionLoop
        set(StreamPlan.type(shape, elsewhere: isElsewhere), shape, placement) {
          request, items, writer in
          stage.state.withLock { $0.running += 1 }
          defer { stage.state.withLock { $0.running -= 1 } }
          return try await handle(request, items, writer)
        }
      }
    }
  }

  private func handle(
    _ request: InboundRequest, _ items: Items<[UInt8]>, _ writer: ItemWriter<[UInt8]>
  ) async throws -> [UInt8] {
    guard let body = ScenarioBody(request.body), let plan = stage.plan.stream(body.key) else {
      stage.oracle.found(.ownAnswers, "a stream's request of \(request.body.count) bytes is wrong")
      throw Rejection(.malformed)
    }
    if isAlive() { stage.oracle.requests.ran(plan.key) }
    // A cancelled handler's result is dropped.
    defer { if isAlive(), !Task.isCancelled { stage.oracle.requests.returned(plan.key) } }
    let ends = StreamEnds(
      plan: plan, side: .responder, ledger: stage.oracle.items, clock: request.clock,
      isAlive: isAlive)
    try await serve(plan, ends, items, writer)
    ends.finished()
    return plan.body.bytes(count: 16)
  }

  private func serve(
    _ plan: StreamPlan, _ ends: StreamEnds, _ items: Items<[UInt8]>, _ writer: ItemWriter<[UInt8]>
  ) async throws {
    switch plan.order {
    case _ where plan.shape == .requestItems:
      try await ends.readAll(items)
    case .leavesLast:
      if plan.shape.contains(.requestItems) { try await ends.readAll(items) }
      try await ends.writeAllWithoutWaiting(writer)
    case _ where plan.shape == .responseItems, .writesFirst:
      try await ends.writeAll(writer)
      if plan.shape.contains(.requestItems) { try await ends.readAll(items) }
    case .readsFirst:
      try await ends.readAll(items)
      try await ends.writeAll(writer)
    case .alternates:
      try await ends.alternate(items, writer)
    case .both:
      try await ends.readAndWrite(items, writer)
    }
  }
}
