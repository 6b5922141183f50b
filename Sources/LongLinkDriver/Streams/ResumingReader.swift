// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport
internal import Synchronization

/// Reads a stream that is opened again when it is cut off.
///
/// It opens one stream after the other, and takes all items of one before it opens the next.
final class ResumingReader<Item: BodyDecodable & Sendable>: Sendable {
  private struct State {
    /// The stream that is currently open, if any.
    var current: (items: Items<Item>, channel: BoundChannel)?
    /// The last item that was taken; nil at first.
    var last: Item?
    /// The item that comes after the event that was returned last.
    var ahead: Item?
    /// The number of items that were taken: from all streams, and from the current one.
    var count: UInt64 = 0
    var currentCount = 0
    /// What may have happened to the requests before the current one.
    var past = Delivery.notSent
    /// When the time for the whole sequence is over; nil before it has begun.
    var deadline: LinkInstant?
    var delays: ReopenDelays?
    var reopening = Reopening()
    /// When the current stream is to be opened, after its delay; nil without a delay.
    var due: LinkInstant?
    /// When the next stream may be opened; set if the last one failed before it was due.
    var pause: LinkInstant?
    var isReading = false
    var end: Result<Void, LongLinkError>?
  }

  /// The attempts to open the stream again since the last item.
  private struct Reopening {
    /// How often the stream was opened again.
    var attempts = 0
    /// The first error since the last item.
    var error: LongLinkError?
    /// The delay before the next attempt, in nanoseconds; nil for none.
    var delay: Int64?

    var event: StreamEvent<Item>? {
      attempts > 0 ? .resumed(after: error, attempts: attempts) : nil
    }
  }

  private let type: MessageType
  private let method: MethodName
  private let options: StreamOptions
  private let port: RequestPort
  private let retries: @Sendable (LongLinkError) -> Bool
  private let body: @Sendable (Item?) -> RequestBody
  private let state = Mutex(State())

  init(
    _ type: MessageType, of method: MethodName, _ options: StreamOptions, on port: RequestPort,
    _ retries: @escaping @Sendable (LongLinkError) -> Bool,
    _ body: @escaping @Sendable (Item?) -> RequestBody
  ) {
    self.type = type
    self.method = method
    self.options = options
    self.port = port
    self.retries = retries
    self.body = body
  }

  /// Returns the next item, or the event that comes before it; nil at the end.
  nonisolated(nonsending) func next() async throws(LongLinkError) -> StreamEvent<Item>? {
    let isAlone = state.withLock { state in
      defer { state.isReading = true }
      return !state.isReading
    }
    precondition(isAlone, "only one task may read the items of a stream at a time")
    defer { state.withLock { $0.isReading = false } }
    return try await following()
  }

  private nonisolated(nonsending) func following()
    async throws(LongLinkError) -> StreamEvent<Item>?
  {
    if let item = state.withLock({ $0.ahead.take() }) { return .item(item) }
    while true {
      if let end = state.withLock({ $0.end }) {
        try end.get()
        return nil
      }
      guard let (current, channel) = state.withLock({ $0.current }) else {
        // A cancelled task does not stop here: the next stream reports it.
        if let pause = state.withLock({ $0.pause.take() }) {
          try? await port.loop.clock.sleep(until: pause)
        }
        await open()
        continue
      }
      var items = current
      do throws(LongLinkError) {
        guard let item = try await items.next(isolation: #isolation) else {
          if let event = ended(.success(())) { return event }
          continue
        }
        return taken(item)
      } catch {
        // Checked here, because a job of the loop belongs to no task.
        let isCancelled = Task.isCancelled
        switch await port.loop.run({ [self] in judge(error, of: channel, isCancelled) }) {
        case .reopen: break
        case .ask(let error) where !isCancelled && retries(error):
          if error.response == .gone { forget(error) }
        case .ask(let error), .end(let error):
          _ = ended(.failure(error))
          throw error
        }
      }
    }
  }

  private func taken(_ item: Item) -> StreamEvent<Item> {
    state.withLock { state in
      state.last = item
      state.count += 1
      state.currentCount += 1
      guard let event = state.reopening.event else { return .item(item) }
      state.reopening = Reopening()
      state.ahead = item
      return event
    }
  }

  private func ended(_ end: Result<Void, LongLinkError>) -> StreamEvent<Item>? {
    state.withLock { state in
      state.current = nil
      state.end = end
      return state.reopening.event
    }
  }

  /// Forgets the last item, because the peer no longer has the items that follow it.
  private func forget(_ error: LongLinkError) {
    state.withLock { ($0.last, $0.reopening.error) = (nil, error) }
  }
}

// MARK: - Opening

extension ResumingReader {
  /// Opens the stream after the last item, once the drawn delay has passed.
  private func open() async {
    let (last, isFirst) = state.withLock { ($0.last, $0.deadline == nil) }
    let body = body(last)
    let current = await port.loop.run { [self] in
      var options = options
      let now = port.loop.driver.now
      let (deadline, delay) = state.withLock { state in
        let timeout = options.timeout?.clampedNanoseconds
        let deadline = state.deadline ?? timeout.map { now + $0 } ?? .distantFuture
        state.deadline = deadline
        state.due = state.reopening.delay.map { now + $0 }
        return (deadline, state.reopening.delay)
      }
      if deadline != .distantFuture { options.timeout = .nanoseconds(max(0, deadline - now)) }
      if !isFirst { options.waitsForConnection = true }
      let request = StreamRequest(
        type, body, .responseItems, options, of: method, on: port, isResuming: true)
      let handle =
        if let delay { RequestHandle(request, after: delay) } else { RequestHandle(request) }
      return (
        items: Items<Item>(request.channel, StreamLease(handle)), channel: request.channel
      )
    }
    state.withLock { state in
      state.current = current
      state.currentCount = 0
      state.reopening.delay = nil
      if !isFirst { state.reopening.attempts += 1 }
    }
  }
}

// MARK: - Failures

extension ResumingReader {
  /// What to do after a stream has ended.
  private enum Verdict: Sendable {
    case reopen
    /// The application decides whether to open the stream again after this error.
    case ask(LongLinkError)
    case end(LongLinkError)
  }

  /// Decides what to do after the error that ended the current stream. Call it on the loop.
  private func judge(
    _ error: LongLinkError, of channel: BoundChannel, _ isCancelled: Bool
  ) -> Verdict {
    let (channel, now) = (channel.value, port.loop.driver.now)
    return state.withLock { state in
      state.current = nil
      let lasting = channel.carriedSince.map { now - $0 } ?? 0
      if state.currentCount > 0 || lasting >= ReopenDelays(port.sink.value.reconnect).proof {
        state.delays = nil
      }
      let whole = error.after(state.past).with(itemsReceived: state.count)
      state.past = whole.delivery
      if error.code == .cancelled {
        return channel.isReplaced && !isCancelled ? .reopen : .end(whole)
      }
      let isLate = error.code == .deadlineExceeded && state.deadline ?? .distantFuture <= now
      if isLate || error.code == .closed { return .end(whole) }
      let isPassing = error.isPassingForStreams
      if isCancelled, isPassing { return .end(whole.with(.cancelled)) }
      prepare(after: whole, &state)
      let due = min(state.due ?? now, state.deadline ?? .distantFuture)
      state.pause = due > now ? due : nil
      return isPassing ? .reopen : .ask(whole)
    }
  }

  /// Draws the delay before the next attempt.
  private func prepare(after error: LongLinkError, _ state: inout State) {
    var delays = state.delays ?? ReopenDelays(port.sink.value.reconnect)
    state.reopening.delay = delays.next(
      askedFor: error.retryAfter?.clampedNanoseconds ?? 0, bits: port.loop.driver.nextRandom())
    state.delays = delays
    if state.reopening.error == nil { state.reopening.error = error }
  }
}

extension LongLinkError {
  /// Whether a stream that failed with this error is opened again without asking the application.
  fileprivate var isPassingForStreams: Bool {
    switch code {
    case .connectionLost, .corrupted, .deadlineExceeded: true
    // The peer's framework has ended the stream, or the peer asks to come back later.
    case .rejected where response == .gone: false
    case .rejected: delivery == .sent || response == .draining || response == .overloaded
    default: false
    }
  }
}
