// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkServer
internal import LongLinkTransport
internal import LongLinkUploadMessages
internal import Synchronization

/// Receives the uploads of a server, and counts them. `LongLinkServer.routeUploads` returns it; the
/// server keeps it, so you need not.
public final class UploadReceiver: Sendable {
  private struct State {
    var clock: UploadClock?
    var sweeping: Task<Void, Never>?
  }

  let store: UploadStore
  let threads: FileThreads
  let log: PeerLog
  let waiting: WaitingBytes
  let mayFinish: @Sendable (FinishedUpload, Peer) async throws(Rejection) -> Void
  let onFinish: @Sendable (FinishedUpload) -> Void
  private let state = Mutex(State())

  init(
    _ store: UploadStore, _ threads: FileThreads, _ logger: Logger,
    waiting: WaitingBytes,
    _ mayFinish: @escaping @Sendable (FinishedUpload, Peer) async throws(Rejection) -> Void,
    _ onFinish: @escaping @Sendable (FinishedUpload) -> Void
  ) {
    self.waiting = waiting
    self.store = store
    self.threads = threads
    log = PeerLog(logger)
    self.mayFinish = mayFinish
    self.onFinish = onFinish
  }

  /// The counters of the uploads at this moment.
  public var counters: UploadCounters { store.counters }

  /// The time that the store gets, in milliseconds since 1970.
  var now: UInt64 { state.withLock(of: self) { $0.clock }?.now ?? UploadClock.systemTime() }

  // MARK: Routes

  /// Sets the routes. `fileID` and `line` say where the application has asked for that.
  func route(
    on server: LongLinkServer, requires rule: AccessRule?, _ fileID: StaticString, _ line: UInt
  ) {
    // Each request counts against its client's limit.
    func route<Request: BodyDecodable, Reply: BodyEncodable & Sendable>(
      _ method: RPCMethod<Request, Reply>, upTo limit: Int = UploadLimits.mostOtherRequestBytes,
      _ handler: @escaping @Sendable (Request, InboundRequest) async throws -> Reply
    ) {
      // Not the typed form of `route`, because a request is decoded only if it is small enough.
      server.route(method.type, requires: rule, fileID: fileID, line: line) { [self] request in
        try await counted(request) {
          var lease: DecodedLease?
          defer { withExtendedLifetime(lease) {} }
          let message: Request = try decoded(request, upTo: limit, lease: &lease)
          return try await handler(message, request)
        }
      }
    }
    route(UploadMethods.create, upTo: UploadLimits.mostRequestBytes) { [self] message, request in
      // Checked before the request waits for a thread: many large requests may wait.
      do throws(UploadFailure) {
        try store.check(message)
      } catch {
        throw rejection(error, request)
      }
      let id = request.peer.loop.randomKey().hexadecimal
      let principal = UploadOwner.name(of: request.peer)
      return try await answer(request) { [self] () throws(UploadFailure) in
        try store.create(message, id: id, of: principal, now: now)
      }
    }
    route(UploadMethods.status) { [self] message, request in
      let principal = UploadOwner.name(of: request.peer)
      return try await answer(request) { [self] () throws(UploadFailure) in
        try store.status(message, of: principal, now: now)
      }
    }
    server.routeStream(
      UploadMethods.append, .requestItems, itemTimeout: store.limits.itemTimeout,
      requires: rule, fileID: fileID, line: line
    ) { [self] request, items, _ in
      var lease: DecodedLease?
      defer { withExtendedLifetime(lease) {} }
      let message: AppendRequest = try decoded(request, lease: &lease)
      return try await append(message, items, request)
    }
    route(UploadMethods.finish) { [self] message, request in
      try await finish(message, request)
    }
    route(UploadMethods.abort) { [self] message, request in
      let principal = UploadOwner.name(of: request.peer)
      try await answer(request) { [self] () throws(UploadFailure) in
        try store.abort(message, of: principal)
      }
      try await removeRest(of: message.id, request)
      return EmptyBody()
    }
  }

  /// Decodes a request, unless it is larger than `limit`: a decoded request can take many times as
  /// much memory.
  private func decoded<Request: BodyDecodable>(
    _ request: InboundRequest, upTo limit: Int = UploadLimits.mostOtherRequestBytes,
    lease: inout DecodedLease?
  ) throws -> Request {
    guard request.body.count <= limit else {
      throw rejection(.tooLarge("the request has more than \(limit) bytes"), request)
    }
    return try request.decoded(as: Request.self, lease: &lease)
  }

  /// Counts a request against its client's limit while `work` runs, so that no client keeps the
  /// threads busy alone.
  private func counted<Reply: Sendable>(
    _ request: InboundRequest, _ work: () async throws -> Reply
  ) async throws -> Reply {
    let principal = UploadOwner.name(of: request.peer)
    do throws(UploadFailure) {
      try store.quotas.addRequest(of: principal)
    } catch {
      throw rejection(error, request)
    }
    defer { store.quotas.removeRequest(of: principal) }
    return try await work()
  }

  /// Answers a request with the result of a call that may block. While the call returns nil, it is
  /// repeated at the client's next turn.
  private func answer<Reply: Sendable>(
    _ request: InboundRequest, _ call: @escaping @Sendable () throws(UploadFailure) -> Reply?
  ) async throws -> Reply {
    do throws(UploadFailure) {
      return try await threads.run(
        of: UploadOwner.name(of: request.peer), on: request.peer.loop, call)
    } catch {
      throw rejection(error, request)
    }
  }

  /// Removes the remaining files of an upload.
  private func removeRest(of id: String, _ request: InboundRequest) async throws {
    try await answer(request) { [store] () throws(UploadFailure) in
      try store.removeMore(id) ? nil : ()
    }
  }

  private func append(
    _ message: AppendRequest, _ items: Items<[UInt8]>, _ request: InboundRequest
  ) async throws -> AppendResponse {
    let principal = UploadOwner.name(of: request.peer)
    let append = try await answer(request) { [store] () throws(UploadFailure) in
      try store.beginAppend(message, of: principal)
    }
    defer { store.quotas.removeAppend(of: principal) }
    do {
      try await copy(items, to: append, of: principal, on: request.peer.loop)
    } catch {
      // The bytes that have arrived are kept, unless another client has taken the upload over.
      _ = try? await threads.run(of: principal, on: request.peer.loop) {
        [self] () throws(UploadFailure) in
        try append.end(now: now)
      }
      store.counted { $0.appendsCut += 1 }
      guard let failure = error as? UploadFailure else { throw error }
      throw rejection(failure, request)
    }
    let offset = try await answer(request) { [self] () throws(UploadFailure) in
      try append.end(now: now)
    }
    store.counted { $0.appends += 1 }
    return AppendResponse(offset: offset)
  }

  /// Writes items until they end, or until the upload is taken over or removed.
  private func copy(
    _ items: Items<[UInt8]>, to append: Append, of owner: String, on loop: EventLoop
  ) async throws {
    let flow = AppendFlow(
      append, of: owner, threads, on: loop, waiting, minRate: store.limits.minAppendRate)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        defer { append.stopped.open(()) }
        try await flow.copy(items)
      }
      group.addTask {
        await append.stopped.value
        // Reached even if the client sends nothing more.
        if let failure = append.fencing { throw failure }
      }
      // The first error cancels the other task.
      for try await _ in group {}
    }
  }

  private func finish(
    _ message: FinishRequest, _ request: InboundRequest
  ) async throws -> FinishResponse {
    let principal = UploadOwner.name(of: request.peer)
    let start = try await answer(request) { [store] () throws(UploadFailure) in
      try store.beginFinish(message, of: principal)
    }
    let settled: UploadStore.Settled
    switch start {
    case .done(let response):
      return response
    case .committed(let upload):
      settled = try await answer(request) { [self] () throws(UploadFailure) in
        try store.settle(upload, now: now)
      }
    case .hashing(let finishing):
      settled = try await end(finishing, request)
    }
    try? await removeRest(of: message.id, request)
    if settled.isFirst { finished(message, settled.response, request) }
    return settled.response
  }

  private func end(
    _ finishing: Finishing, _ request: InboundRequest
  ) async throws -> UploadStore.Settled {
    let isIntact = try await answer(request) { () throws(UploadFailure) in
      try finishing.hashMore() ? nil : try finishing.isIntact()
    }
    if isIntact {
      try await admit(finishing, request)
      try await answer(request) { () throws(UploadFailure) in
        try finishing.completeMore() ? nil : ()
      }
    }
    do throws(UploadFailure) {
      return try await threads.run(
        of: UploadOwner.name(of: request.peer), on: request.peer.loop
      ) { [self] () throws(UploadFailure) in
        try store.endFinish(finishing, now: now)
      }
    } catch {
      // After any other failure the files belong to a client that has taken the upload over, or to
      // a store that has taken the directory up again.
      if case .mismatch = error { try? await removeRest(of: finishing.upload.id, request) }
      throw rejection(error, request)
    }
  }

  /// Asks the application whether an upload may be finished.
  private func admit(_ finishing: Finishing, _ request: InboundRequest) async throws {
    let upload = FinishedUpload(
      id: finishing.upload.id, names: finishing.upload.layout.names, finishing.request.size)
    do throws(Rejection) {
      try await mayFinish(upload, request.peer)
    } catch {
      _ = try await answer(request) { () throws(UploadFailure) in finishing.refuse() }
      store.counted { $0.refused += 1 }
      log.log(.info, "The application refused to finish an upload", at: request.peer.clock.now) {
        [
          "id": "\(upload.id)", "code": "\(error.code)",
          "peer": "\(PeerText(UploadOwner.name(of: request.peer)))",
        ]
      }
      throw error
    }
  }

  private func finished(
    _ message: FinishRequest, _ response: FinishResponse, _ request: InboundRequest
  ) {
    log.log(.info, "An upload was finished", at: request.peer.clock.now) {
      [
        "id": "\(message.id)", "bytes": "\(message.size)", "parts": "\(response.names.count)",
        "peer": "\(PeerText(UploadOwner.name(of: request.peer)))",
      ]
    }
    onFinish(FinishedUpload(id: message.id, names: response.names, message.size))
  }

  // MARK: Failures

  /// The response to a failure, which is counted, and logged if the operator can do something.
  private func rejection(_ failure: UploadFailure, _ request: InboundRequest) -> Rejection {
    store.counting(failure)
    let now = request.peer.clock.now
    let peer = PeerText(UploadOwner.name(of: request.peer))
    switch failure {
    case .failed(let error):
      log.log(.error, "An upload could not be read or written", at: now) {
        ["error": "\(PeerText(error.description))", "peer": "\(peer)"]
      }
    case .damaged(let text):
      log.log(.error, "An upload is damaged", at: now) { ["error": "\(text)", "peer": "\(peer)"] }
    case .noSpace(let text):
      log.log(.warning, "There is no space for an upload", at: now) {
        ["reason": "\(text)", "peer": "\(peer)"]
      }
    case .mismatch(let text):
      log.log(.warning, "An upload could not be finished", at: now) {
        ["reason": "\(text)", "peer": "\(peer)"]
      }
    case .tooMany(let text), .tooLarge(let text), .tooSlow(let text):
      log.log(.info, "An upload was turned away", at: now) {
        ["reason": "\(text)", "peer": "\(peer)"]
      }
    case .malformed, .unknown, .conflict: break
    }
    return failure.rejection
  }
}

// MARK: - Expiry

extension UploadReceiver: ServerService {
  /// The owner of the server's own file work; no client has an empty name.
  private static let own = ""

  package func serverStarted(on loop: EventLoop) {
    let clock = UploadClock(loop, time: UploadClock.systemTime())
    do throws(FileError) {
      // Needed only if an earlier start has failed.
      try store.resume(now: clock.now)
    } catch {
      log.logger.error(
        "Uploads cannot be received", metadata: ["error": "\(error.description)"])
    }
    let sweeping = Task(executorPreference: loop) { [weak self] in
      while !Task.isCancelled {
        guard let pause = await self?.sweep(clock, on: loop) else { return }
        try? await loop.sleep(for: pause)
      }
    }
    state.withLock(of: self) { state in
      state.clock = clock
      state.sweeping = sweeping
    }
  }

  package func serverStopped(on loop: EventLoop) async {
    // On the loop, because cancelling then removes the timer at once.
    await loop.run { [self] in
      state.withLock(of: self) { state in
        state.sweeping?.cancel()
        state.sweeping = nil
      }
    }
    let now = now
    await threads.run(of: Self.own, on: loop) { [store] in store.suspend(now: now) }
  }

  /// Removes what has expired, and returns the time until something else can expire.
  private func sweep(_ clock: UploadClock, on loop: EventLoop) async -> Duration {
    let next = await threads.run(of: Self.own, on: loop) { [store] () -> UInt64?? in
      let now = clock.now
      let next = store.expire(now: now)
      return next == now ? nil : .some(next)
    }
    let lifetime = store.limits.lifetime
    guard let next else { return lifetime }
    let now = clock.now
    return min(lifetime, max(.seconds(1), .milliseconds(Int64(next - min(now, next)))))
  }
}
