// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkServer
import LongLinkUploadMessages
import Synchronization

/// A server's uploads in memory, which survive a crash of its process, and what a test makes it do
/// wrong.
final class ScriptedUploads: Sendable {
  struct Entry: Sendable {
    var request: CreateRequest
    var generation: UInt64 = 1
    var bytes: [UInt8] = []
    var isFinished = false
  }

  struct Script: Sendable {
    var mostAppend: UInt64 = 8 << 20
    /// What IDs begin with.
    var prefix = "upload-"
    /// The next answers to requests of a type, in place of the right ones.
    var rejections: [MessageType: [Rejection]] = [:]
    /// How many requests of a type are carried out and not answered: the connection is lost.
    var lostAnswers: [MessageType: Int] = [:]
    var loseConnection: (@Sendable () -> Void)?
    /// Called with the number of bytes of an upload after each item.
    var onItem: (@Sendable (Int) -> Void)?
    /// Called in front of each append.
    var onAppend: (@Sendable (Int) -> Void)?
    /// Whether an append that is cut off keeps nothing.
    var forgetsCutAppends = false
    /// Whether appends are answered, but none of their bytes is kept.
    var keepsNothing = false
    /// How long each request of these types takes.
    var delay: [MessageType: Duration] = [:]
  }

  struct State: Sendable {
    var uploads: [String: Entry] = [:]
    var script = Script()
    /// The requests of each type, and the offsets and byte counts of appends.
    var requests: [MessageType: Int] = [:]
    var appends: [(offset: UInt64, count: Int)] = []
    var running = 0
    var mostRunning = 0
    var nextID = 1
  }

  let state = Mutex(State())

  var script: Script {
    get { state.withLock { $0.script } }
    set { state.withLock { $0.script = newValue } }
  }
  /// The only upload.
  var only: Entry? {
    state.withLock { $0.uploads.count == 1 ? $0.uploads.values.first : nil }
  }
  var onlyID: String? { state.withLock { $0.uploads.keys.first } }
  /// The bytes that came in all appends.
  var received: Int { state.withLock { $0.appends.reduce(0) { $0 + $1.count } } }

  func count(_ type: MessageType) -> Int { state.withLock { $0.requests[type, default: 0] } }

  func change(_ body: (inout Entry) -> Void) {
    state.withLock { state in
      for id in state.uploads.keys {
        guard var entry = state.uploads[id] else { continue }
        body(&entry)
        state.uploads[id] = entry
      }
    }
  }

  func forgetAll() { state.withLock { $0.uploads = [:] } }
}

// MARK: - The routes

extension ScriptedUploads {
  /// Answers on a server. A process that has crashed changes nothing any more.
  func route(_ server: LongLinkServer, isAlive: @escaping @Sendable () -> Bool = { true }) {
    server.route(UploadMethods.create.type) { request in
      try await self.answer(request, isAlive) {
        try self.create(request.decoded(as: CreateRequest.self))
      }
    }
    server.route(UploadMethods.status.type) { request in
      try await self.answer(request, isAlive) {
        try self.status(request.decoded(as: StatusRequest.self))
      }
    }
    server.route(UploadMethods.finish.type) { request in
      try await self.answer(request, isAlive) {
        try self.finish(request.decoded(as: FinishRequest.self))
      }
    }
    server.route(UploadMethods.abort.type) { request in
      try await self.answer(request, isAlive) {
        let id = try request.decoded(as: AbortRequest.self).id
        guard self.state.withLock({ $0.uploads.removeValue(forKey: id) }) != nil else {
          throw Rejection(404)
        }
        return []
      }
    }
    server.routeStream(UploadMethods.append, .requestItems) { request, items, _ in
      self.begins()
      defer { self.state.withLock { $0.running -= 1 } }
      return try await self.answer(request, isAlive) {
        try await self.append(request, items, isAlive)
      }
    }
  }

  private func begins() {
    state.withLock { state in
      state.running += 1
      state.mostRunning = max(state.mostRunning, state.running)
    }
  }

  private func answer(
    _ request: InboundRequest, _ isAlive: @Sendable () -> Bool,
    _ body: () async throws -> [UInt8]
  ) async throws -> [UInt8] {
    guard isAlive() else { throw Rejection(.failed) }
    let type = request.type
    let (rejection, delay) = state.withLock { state -> (Rejection?, Duration?) in
      state.requests[type, default: 0] += 1
      let rejection =
        state.script.rejections[type]?.isEmpty == false
        ? state.script.rejections[type]?.removeFirst() : nil
      return (rejection, state.script.delay[type])
    }
    if let delay { try await request.clock.sleep(for: delay) }
    if let rejection { throw rejection }
    let reply = try await body()
    let isLost = state.withLock { state -> Bool in
      guard let count = state.script.lostAnswers[type], count > 0 else { return false }
      state.script.lostAnswers[type] = count - 1
      return true
    }
    if isLost {
      script.loseConnection?()
      try await request.clock.sleep(for: .seconds(1_000))
    }
    return reply
  }

  private func create(_ request: CreateRequest) throws -> [UInt8] {
    let (id, entry, most) = state.withLock { state -> (String, Entry, UInt64) in
      if let known = state.uploads.first(where: { $0.value.request.key == request.key }) {
        return (known.key, known.value, state.script.mostAppend)
      }
      let id = "\(state.script.prefix)\(state.nextID)"
      state.nextID += 1
      state.uploads[id] = Entry(request: request)
      return (id, Entry(request: request), state.script.mostAppend)
    }
    return try CreateResponse(
      id: id, generation: entry.generation, offset: UInt64(entry.bytes.count),
      expiresInMs: 60_000, mostAppend: most
    ).encodedBytes()
  }

  private func status(_ request: StatusRequest) throws -> [UInt8] {
    let answer = state.withLock { state -> StatusResponse? in
      guard var entry = state.uploads[request.id] else { return nil }
      if request.takesOver, !entry.isFinished { entry.generation += 1 }
      state.uploads[request.id] = entry
      return StatusResponse(
        offset: UInt64(entry.bytes.count), generation: entry.generation,
        state: entry.isFinished ? .finished : .open, expiresInMs: 60_000,
        mostAppend: state.script.mostAppend)
    }
    guard let answer else { throw Rejection(404) }
    return try answer.encodedBytes()
  }

  private func conflict(_ entry: Entry) throws -> Rejection {
    Rejection(
      409,
      body: try AppendConflict(
        offset: UInt64(entry.bytes.count), generation: entry.generation
      ).encodedBytes())
  }

  private func append(
    _ request: InboundRequest, _ items: Items<[UInt8]>, _ isAlive: @Sendable () -> Bool
  ) async throws -> [UInt8] {
    let message = try request.decoded(as: AppendRequest.self)
    script.onAppend?(Int(message.offset))
    let found = state.withLock { $0.uploads[message.id] }
    guard let entry = found else { throw Rejection(404) }
    guard entry.generation == message.generation, UInt64(entry.bytes.count) == message.offset else {
      throw try conflict(entry)
    }
    let place = state.withLock { state -> Int in
      state.appends.append((message.offset, 0))
      return state.appends.count - 1
    }
    var count = 0
    do {
      for try await item in items {
        guard isAlive() else { throw CancellationError() }
        count += item.count
        let entry = state.withLock { state -> Entry? in
          state.appends[place].count += item.count
          guard state.uploads[message.id]?.generation == message.generation else {
            return state.uploads[message.id] ?? Entry(request: CreateRequest())
          }
          state.uploads[message.id]?.bytes += item
          return nil
        }
        if let entry { throw try conflict(entry) }
        script.onItem?(Int(message.offset) + count)
      }
    } catch {
      if script.forgetsCutAppends, isAlive() {
        state.withLock { state in
          let bytes = state.uploads[message.id]?.bytes.prefix(Int(message.offset)) ?? []
          if state.uploads[message.id]?.generation == message.generation {
            state.uploads[message.id]?.bytes = Array(bytes)
          }
        }
      }
      throw error
    }
    if script.keepsNothing {
      change { $0.bytes.removeLast(count) }
      count = 0
    }
    return try AppendResponse(offset: message.offset + UInt64(count)).encodedBytes()
  }

  private func finish(_ request: FinishRequest) throws -> [UInt8] {
    guard let entry = state.withLock({ $0.uploads[request.id] }) else { throw Rejection(404) }
    guard entry.isFinished || entry.generation == request.generation else {
      throw try conflict(entry)
    }
    guard UInt64(entry.bytes.count) == request.size,
      SHA256Digest.hash(of: entry.bytes) == request.sha256
    else { throw Rejection(422) }
    state.withLock { $0.uploads[request.id]?.isFinished = true }
    return try FinishResponse(names: entry.request.parts.map(\.fileName)).encodedBytes()
  }
}
