// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCalls
import LongLinkTesting
import Testing

/// Who has the word on how a request is made.
@Suite struct PolicyTests {
  @Test func `the narrower policy takes precedence, and its unset fields come from the wider one`()
  {
    let service = CallPolicy(
      RequestOptions(
        timeout: .seconds(1), priority: 3, idempotencyKey: [1], metadata: ["a": "1", "b": "1"]))
    let method = CallPolicy(
      RequestOptions(timeout: .seconds(2), metadata: ["b": "2"], retry: .never), isShared: true)
    let call = CallPolicy(RequestOptions(cancelsAtPeer: true), isShared: false)
    let policy = call.over(method).over(service)
    let options = policy.options
    #expect(options.timeout == .seconds(2) && options.priority == 3)
    #expect(options.cancelsAtPeer == true && policy.isShared == false)
    #expect(options.metadata == ["a": "1", "b": "2"])
    #expect(options.idempotencyKey == [1] && options.retry == .never)
    #expect(options.waitsForConnection == nil && options.isOrdered == nil && policy.cache == nil)
  }

  @Test func `call, method, service and configuration reach the wire in this order`() async throws {
    let service = CallService(
      policy: CallPolicy(RequestOptions(priority: 2, metadata: ["service": "yes"])))
    let method = RPCMethod<[UInt8], [UInt8]>(1, of: "test", options: RequestOptions(priority: 3))
    let other = RPCMethod<[UInt8], [UInt8]>(2, of: "test", options: RequestOptions(priority: 3))
    let widest = CallPolicy(
      RequestOptions(timeout: .seconds(5), priority: 1, metadata: ["app": "test"]))
    let configuration = CallConfiguration(
      policy: widest, services: ["test": service],
      policies: [other.type: CallPolicy(RequestOptions(priority: 9))])
    try await Scene.run(configuration) { scene in
      scene.server.on(1, .reply())
      scene.server.on(2, .reply())
      // Before the welcome nothing of it can be told.
      try await scene.client.connect()
      _ = try await scene.api.call(method, [])
      _ = try await scene.api.call(
        method, [], policy: CallPolicy(RequestOptions(priority: 4)))
      _ = try await scene.api.call(other, [])
      let metadata = scene.server.requests(of: 1).map(\.metadata)
      #expect(metadata.map(\.?.priority) == [3, 4])
      #expect(metadata.map(\.?.remaining) == [.seconds(5), .seconds(5)])
      #expect(metadata[0]?.entries == ["app": "test", "service": "yes"])
      #expect(scene.server.requests(of: 2).map(\.metadata?.priority) == [9])
    }
  }

  @Test func `a fresh key differs for each call, and is the same for each retry`() async throws {
    let method = RawMethod.raw(1, CallPolicy(RequestOptions(retry: .once)))
    try await Scene.run { scene in
      scene.server.handshake = .welcome(keySpace: [UInt8](1...16))
      try await scene.client.connect()
      scene.server.on(1, [.reset, .reply([1]), .reply([2])])
      #expect(try await scene.api.call(method, []) == [1])
      #expect(try await scene.api.call(method, []) == [2])
      let keys = scene.server.requests(of: 1).map { $0.metadata?.idempotencyKey }
      #expect(keys.count == 3)
      #expect(keys[0]?.count == 16 && keys[0] == keys[1] && keys[1] != keys[2])
    }
  }

  @Test func `an impossible configuration is reported`() async throws {
    let client = try LongLinkClient(to: .host("10.0.0.1", port: 9))
    let error = #expect(throws: LongLinkError.self) {
      try CallClient(client, CallConfiguration(cacheBytes: -1))
    }
    #expect(error?.code == .invalidConfiguration)
    #expect(error?.operation.contains("cacheBytes") == true)
    await client.close()
  }

  @Test func `a call that cannot be encoded is not sent`() async throws {
    struct Unspeakable: BodyEncodable, Sendable {
      var encodedByteCount: Int { get throws(BodyError) { throw BodyError(.interiorNUL) } }
      func encode(into output: inout OutputRawSpan) throws(BodyError) {
        throw BodyError(.interiorNUL)
      }
    }
    try await Scene.run { scene in
      for isReadOnly in [false, true] {
        let method = RPCMethod<Unspeakable, [UInt8]>(1, isReadOnly: isReadOnly)
        let error = try await failure { try await scene.api.call(method, Unspeakable()) }
        #expect(error.code == .encodingFailed && error.delivery == .notSent)
      }
    }
  }
}
