// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
@_spi(Loop) internal import LongLinkTransport
internal import LongLinkUploadMessages

/// One upload, from looking at its files to the server's last answer. It lives on the client's
/// loop.
actor UploadRun {
  /// How often an upload is begun, at most, because the server has forgotten it.
  private static let mostBeginnings = 4

  nonisolated let client: LongLinkClient
  nonisolated var loop: EventLoop { client.loop }
  nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe client.loop.asUnownedSerialExecutor()
  }

  private let body: [UploadPart]
  let options: UploadOptions
  private let hub: ProgressHub
  let feed: LoopBound<ProgressFeed>
  var throttle: Throttle?
  /// Decides when a failure is final.
  var retries: RetryBudget

  /// The ID that the server gave the upload; nil before it has answered.
  var id: String?
  var key = ""
  var generation: UInt64 = 0
  /// The number of bytes that the server has; the next append begins there.
  var offset: UInt64 = 0
  var mostAppend: UInt64 = 0
  /// The most bytes of an append over a short link. With the frames around them that is below 1
  /// MiB, the default limit of nginx.
  static let mostShortAppend: UInt64 = 1_000_000
  /// The most bytes that the server has ever had.
  private var highest: UInt64 = 0
  private var beginnings = 0
  /// The record as it was last written, and its lines for the parts.
  var record: UploadRecord?
  var recordParts: [String] = []
  var source: HashedSource?

  init(
    _ body: [UploadPart], options: UploadOptions, client: LongLinkClient, hub: ProgressHub
  ) {
    self.body = body
    self.options = options
    self.client = client
    self.hub = hub
    feed = LoopBound(ProgressFeed(hub, on: client.loop), on: client.loop)
    throttle = options.bytesPerSecond.map { Throttle(bytesPerSecond: $0) }
    retries = RetryBudget(options.patience)
  }

  /// Runs the upload, and returns its outcome.
  func run() async -> Upload.Outcome {
    let outcome: Upload.Outcome
    do throws(UploadError) {
      outcome = .success(try await upload())
    } catch {
      // After a cancellation any error can come: it is reported as `cancelled`.
      let error = Task.isCancelled ? UploadError(.cancelled) : error
      if error.code == .cancelled, options.abortsOnCancel ?? (options.record == nil) {
        await abort()
      }
      outcome = .failure(error)
    }
    feed.value.finish()
    return outcome
  }

  private func upload() async throws(UploadError) -> UploadReceipt {
    guard !Task.isCancelled else { throw UploadError(.cancelled) }
    let prepared = try await PreparedUpload(body, on: loop)
    retries.begin(at: loop.driver.now)
    source = HashedSource(prepared)
    try await takeUpRecord(prepared)
    if id != nil { try await takeOver() }
    while true {
      do throws(Retry) {
        if id == nil { try await create(prepared) }
        try await sendAll()
        return try await finish(prepared)
      } catch {
        try await recover(from: error)
      }
    }
  }

  /// Appends until the server has all bytes.
  private func sendAll() async throws(Retry) {
    while try await hasMore() { try await append() }
  }

  /// Prepares another attempt: waits, or learns the server's offset. Throws the error if it is
  /// final.
  private func recover(from retry: Retry) async throws(UploadError) {
    switch retry {
    case .final(let error): throw error
    case .forgotten: try await beginAnew()
    case .conflict(let conflict): try await settle(conflict)
    case .link(let error):
      try await wait(after: error)
      if id != nil { try await takeOver() }
    }
  }

  /// Prepares to create the upload again, because the server has forgotten it.
  private func beginAnew() async throws(UploadError) {
    beginnings += 1
    guard beginnings < UploadRun.mostBeginnings else { throw UploadError(.forgotten) }
    id = nil
    generation = 0
    offset = 0
    renewKey()
    try await keepRecord()
  }

  /// Resolves a conflict: goes to the server's offset, or takes the upload over.
  private func settle(_ conflict: AppendConflict) async throws(UploadError) {
    guard id != nil else {
      throw UploadError(.rejected, detail: "the key belongs to an upload of other parts")
    }
    guard conflict.generation <= generation else { throw UploadError(.takenOver) }
    if conflict.generation == generation, conflict.offset != offset, retries.mayRepeat() {
      try move(to: conflict.offset)
    } else {
      // An earlier append of this client may still be running on the server.
      try await wait(after: nil)
      try await takeOver()
    }
  }

  /// Takes the upload over: raises its generation, so that the server writes nothing from older
  /// connections, and learns the offset.
  private func takeOver() async throws(UploadError) {
    while let id {
      let status: StatusResponse
      do throws(Retry) {
        status = try await request(UploadMethods.status, StatusRequest(id: id, takesOver: true))
      } catch {
        switch error {
        case .forgotten: return try await beginAnew()
        case .final(let error): throw error
        case .link(let error): try await wait(after: error)
        case .conflict: try await wait(after: nil)
        }
        continue
      }
      generation = status.generation
      mostAppend = status.mostAppend
      try move(to: status.offset)
      return try await keepRecord()
    }
  }

  /// Waits before the next attempt; throws if there is none, because the patience is over.
  private func wait(after error: LongLinkError?) async throws(UploadError) {
    let random = loop.driver.nextRandom()
    guard let delay = retries.delay(at: loop.driver.now, error?.retryAfter, random) else {
      throw UploadError.exhausted(error)
    }
    do {
      try await loop.sleep(for: delay)
    } catch {
      throw UploadError(.cancelled)
    }
  }
}

// MARK: - Requests

extension UploadRun {
  private func create(_ prepared: PreparedUpload) async throws(Retry) {
    do throws(UploadError) {
      try await keepRecord()
    } catch {
      throw .final(error)
    }
    let request = CreateRequest(parts: prepared.messageParts, key: key)
    let created = try await self.request(UploadMethods.create, request)
    guard UploadRun.isID(created.id) else {
      throw .final(UploadError(.damaged, detail: "the server's ID is none"))
    }
    id = created.id
    retries.begin(at: loop.driver.now)
    generation = created.generation
    mostAppend = created.mostAppend
    do throws(UploadError) {
      try move(to: created.offset)
      try await keepRecord()
    } catch {
      throw .final(error)
    }
  }

  private func finish(_ prepared: PreparedUpload) async throws(Retry) -> UploadReceipt {
    guard let id, let source else { throw .final(UploadError(.failed)) }
    do throws(UploadError) {
      try await prepared.verifyFiles()
    } catch {
      throw .final(error)
    }
    let sha256 = source.sha256
    let finished = try await request(
      UploadMethods.finish,
      FinishRequest(id: id, generation: generation, size: offset, sha256: sha256))
    let size = offset
    feed.value.change { $0.complete(at: size) }
    await removeRecord()
    return UploadReceipt(id: id, names: finished.names, size: size, sha256: sha256)
  }

  /// Whether a text is safe as an ID: IDs are written into records and onto terminals.
  private static func isID(_ text: String) -> Bool {
    guard let first = text.utf8.first, first != UInt8(ascii: "-") else { return false }
    return text.utf8.count <= 128
      && text.utf8.allSatisfy { byte in
        switch Unicode.Scalar(byte) {
        case "0"..."9", "A"..."Z", "a"..."z", "-", "_": true
        default: false
        }
      }
  }

  /// Removes the upload from the server, in a task of its own, because this one is cancelled.
  private func abort() async {
    guard let id else { return }
    let client = client
    await Task(executorPreference: loop) {
      _ = try? await client.request(
        UploadMethods.abort, AbortRequest(id: id),
        options: RequestOptions(
          timeout: .seconds(5), waitsForConnection: false, retry: .idempotent))
    }.value
    await removeRecord()
  }

  /// Makes the server's offset the start of the next append.
  func move(to offset: UInt64) throws(UploadError) {
    if let length = source?.length, offset > length {
      throw UploadError(.damaged, detail: "the server has more bytes than there are")
    }
    self.offset = offset
    if offset > highest {
      retries.advanced(by: offset - highest, at: loop.driver.now)
      highest = offset
    }
    let total = source?.length
    feed.value.change { $0.begin(at: offset, of: total) }
  }

  /// Sends a request that is safe to repeat.
  private func request<Request: BodyEncodable, Reply: BodyDecodable>(
    _ method: RPCMethod<Request, Reply>, _ message: Request
  ) async throws(Retry) -> Reply {
    let options = RequestOptions(
      timeout: retries.timeout(at: loop.driver.now), retry: .idempotent)
    do throws(LongLinkError) {
      return try await client.request(method, message, options: options)
    } catch {
      throw Retry(error)
    }
  }
}
