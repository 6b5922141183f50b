// SPDX-License-Identifier: Apache-2.0

import Logging
import LongLink
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import LongLinkUploadMessages
import Synchronization
import Testing

@testable import LongLinkUploadsServer

/// What a server was told of finished uploads.
final class FinishedUploads: Sendable {
  let list = Mutex<[FinishedUpload]>([])
}

/// A server with uploads in a simulated network, and its clients.
final class RouteStage: Sendable {
  let simulation: Simulation
  let directory: UploadDirectory
  let server: LongLinkServer
  let receiver: UploadReceiver
  let finished: FinishedUploads
  private let clients = Mutex<[LongLinkClient]>([])

  let log = LogLines()

  private init(
    _ simulation: Simulation, _ directory: UploadDirectory, _ limits: UploadLimits,
    _ waiting: WaitingBytes?, _ rule: AccessRule?,
    _ mayFinish: @escaping @Sendable (FinishedUpload, Peer) async throws(Rejection) -> Void,
    _ authenticate: (@Sendable (AuthenticationRequest) async throws -> Authentication)?
  ) throws {
    self.simulation = simulation
    self.directory = directory
    let finished = FinishedUploads()
    self.finished = finished
    var configuration = ServerConfiguration(listen: [.host("10.0.0.1", port: 0)])
    configuration.logger = log.logger(from: .info)
    configuration.identity.authenticate = authenticate
    server = try LongLinkServer(configuration, on: [simulation.eventLoop(named: "server")])
    receiver = try server.routeUploads(
      in: directory.path, limits: limits, requires: rule, waiting: waiting,
      mayFinish: mayFinish
    ) { upload in
      finished.list.withLock { $0.append(upload) }
    }
  }

  /// Runs a body in a world; afterwards everything is closed, and nothing may be left.
  static func run(
    _ change: (inout UploadLimits) -> Void = { _ in },
    in directory: UploadDirectory = UploadDirectory(), waiting: WaitingBytes? = nil,
    requires rule: AccessRule? = nil,
    mayFinish: @escaping @Sendable (FinishedUpload, Peer) async throws(Rejection) -> Void = {
      _, _ throws(Rejection) in
    },
    authenticate: (@Sendable (AuthenticationRequest) async throws -> Authentication)? = nil,
    _ body: @escaping @Sendable (RouteStage) async throws -> Void
  ) async throws {
    var limits = UploadLimits()
    change(&limits)
    let simulation = Simulation(seed: 1)
    let stage = try RouteStage(
      simulation, directory, limits, waiting, rule, mayFinish, authenticate)
    try await simulation.run {
      try await stage.server.start()
      let result = await Result { () async throws in try await body(stage) }
      for client in stage.clients.withLock({ $0 }) { await client.close() }
      await stage.server.shutDown(within: .zero)
      #expect(simulation.openStreams == [] && simulation.openListeners == [])
      #expect(simulation.pendingTimers == [] && simulation.escapes == [])
      try result.get()
    }
  }

  /// A new client of the server, which shows a name as its credential.
  func client(as name: String? = nil) throws -> LongLinkClient {
    var configuration = ClientConfiguration(servers: [server.endpoint])
    if let name {
      configuration.identity.credential = { Array(name.utf8) }
      configuration.identity.sendsCredentialUnencrypted = true
    }
    let client = try LongLinkClient(configuration, on: simulation.mainLoop)
    clients.withLock { $0.append(client) }
    return client
  }

  /// Creates an upload of one file.
  func create(of client: LongLinkClient) async throws -> String {
    try await client.request(
      UploadMethods.create, CreateRequest(parts: [StoreStage.file("a", nil)])
    ).id
  }

  /// Appends bytes as one item, and returns the offset behind them.
  @discardableResult
  func append(
    _ bytes: [UInt8], to id: String, at offset: UInt64, generation: UInt64 = 1,
    of client: LongLinkClient
  ) async throws -> UInt64 {
    let response = try await client.sendItems(
      UploadMethods.append, AppendRequest(id: id, generation: generation, offset: offset)
    ) { writer in try await writer.write(bytes) }
    return try AppendResponse(decodingBytes: response).offset
  }

  /// Finishes an upload.
  func finish(
    _ id: String, _ bytes: [UInt8], generation: UInt64 = 1, of client: LongLinkClient
  ) async throws -> FinishResponse {
    try await client.request(
      UploadMethods.finish,
      FinishRequest(
        id: id, generation: generation, size: UInt64(bytes.count),
        sha256: SHA256Digest.hash(of: bytes))
    )
  }
}

extension Result where Success == Void, Failure == any Error {
  /// The result of a call.
  fileprivate init(_ call: () async throws -> Void) async {
    do {
      try await call()
      self = .success(())
    } catch {
      self = .failure(error)
    }
  }
}
