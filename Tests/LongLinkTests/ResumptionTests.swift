// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
@_spi(Loop) import LongLinkTransport
import Testing

@testable import LongLinkDriver

/// Who waits for a request's outcome is resumed in the way that suits where it is.
struct ResumptionTests {
  /// Answers each request at once, and writes down who waited.
  private final class Sink: RequestSink {
    var kinds: [String] = []

    func submit(
      _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
      _ completion: consuming Completion
    ) -> RequestID {
      switch completion {
      case .waiter: kinds.append("here")
      case .distantWaiter: kinds.append("distant")
      case .pooledWaiter: kinds.append("pooled")
      case .function: kinds.append("function")
      case .handler: kinds.append("handler")
      case .stream: kinds.append("stream")
      case .observed: kinds.append("observed")
      }
      completion(.success([UInt8(kinds.count)]))
      return RequestID(serial: 1, number: UInt64(kinds.count))
    }

    func submit(
      _ type: MessageType, _ body: RequestBody, _ options: RequestOptions,
      _ completion: Completion, after delay: Int64
    ) -> RequestID { submit(type, body, options, completion) }

    let reconnect = ReconnectPolicy()
    func cancel(_ id: RequestID) {}
    func state(of id: RequestID) -> RequestState? { nil }
  }

  private actor LoopActor {
    let loop: EventLoop

    init(_ loop: EventLoop) {
      self.loop = loop
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    func request(_ port: RequestPort) async throws -> [UInt8] { try await ask(port) }
  }

  @Test func `a task is recognized as one of the loop, of the pool or of another executor`()
    async throws
  {
    let loop = try EventLoop(name: "exchange")
    let other = try EventLoop(name: "exchange-other")
    let made = await loop.run { LoopBound(Sink(), on: loop) }
    let port = await loop.run { RequestPort(made.value, on: loop) }
    _ = try await Task(executorPreference: loop) { try await ask(port) }.value
    _ = try await Task.detached { try await ask(port) }.value
    _ = try await Task.detached(priority: .high) { try await ask(port) }.value
    _ = try await Task(executorPreference: other) { try await ask(port) }.value
    _ = try await LoopActor(other).request(port)
    _ = try await Task { @MainActor in try await ask(port) }.value
    let kinds = await loop.run { made.value.kinds }
    #expect(kinds == ["here", "pooled", "distant", "distant", "distant", "distant"])
    other.shutDown()
    loop.shutDown()
  }

  #if compiler(<6.4) && !LONGLINK_PORTABLE
  /// Answers each request in a later job, and writes down whether that put the task on the loop.
  private final class LateSink: RequestSink {
    let loop: EventLoop
    var isOnLoop: [Bool] = []

    init(on loop: EventLoop) {
      self.loop = loop
    }

    func submit(
      _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
      _ completion: consuming Completion
    ) -> RequestID {
      guard case .waiter(let waiter) = completion else { return .none }
      loop.execute { [sink = LoopBound(self, on: loop)] in
        waiter(.success([]))
        sink.value.isOnLoop.append(sink.loop.hasWork)
      }
      return RequestID(serial: 1, number: 1)
    }

    func submit(
      _ type: MessageType, _ body: RequestBody, _ options: RequestOptions,
      _ completion: Completion, after delay: Int64
    ) -> RequestID { submit(type, body, options, completion) }

    let reconnect = ReconnectPolicy()
    func cancel(_ id: RequestID) {}
    func state(of id: RequestID) -> RequestState? { nil }
  }

  @Test func `a task that waits on the loop is resumed there, whatever it prefers`() async throws {
    let loop = try EventLoop(name: "late")
    let made = await loop.run { LoopBound(LateSink(on: loop), on: loop) }
    let port = await loop.run { RequestPort(made.value, on: loop) }
    _ = try await Task(executorPreference: loop) { try await ask(port) }.value
    // An actor of the loop, whose task prefers no executor: the pool would come first.
    _ = try await LoopActor(loop).request(port)
    #expect(await loop.run { made.value.isOnLoop } == [true, true])
    loop.shutDown()
  }
  #endif
}

private func ask(_ port: RequestPort) async throws -> [UInt8] {
  try await awaitResponse(port, 1, .bytes([]), RequestOptions())
}
