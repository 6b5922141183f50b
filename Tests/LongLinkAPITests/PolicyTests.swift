import LongLink
import LongLinkAPI
import LongLinkTesting
import Testing

/// Who has the word on how a request is made.
@Suite struct PolicyTests {
  @Test func `the narrower word stands, and a field that says nothing leaves it to the wider one`()
  {
    let service = RequestPolicy(deadline: .seconds(1), priority: 3, entries: ["a": "1", "b": "1"])
    let method = RequestPolicy(deadline: .seconds(2), entries: ["b": "2"], isShared: true)
    let call = RequestPolicy(cancellation: .notifyServer, isShared: false)
    let policy = call.over(method).over(service)
    #expect(policy.deadline == .seconds(2) && policy.priority == 3)
    #expect(policy.cancellation == .notifyServer && policy.isShared == false)
    #expect(policy.entries == ["a": "1", "b": "2"])
    #expect(policy.offline == nil && policy.cache == nil)
  }

  @Test func `call, method, service and configuration reach the wire in this order`() async throws {
    let service = APIService(policy: RequestPolicy(priority: 2, entries: ["service": "yes"]))
    let method = APIMethod<[UInt8], [UInt8]>(
      1, returning: [UInt8].self, of: service, policy: RequestPolicy(priority: 3))
    let widest = RequestPolicy(deadline: .seconds(5), priority: 1, entries: ["app": "test"])
    try await Scene.run(APIConfiguration(policy: widest)) { scene in
      scene.server.on(1, .reply())
      // Before the welcome nothing of it can be told.
      try await scene.client.connect()
      _ = try await scene.api.call(method, [])
      _ = try await scene.api.call(method, [], policy: RequestPolicy(priority: 4))
      let metadata = scene.server.requests(of: 1).map(\.metadata)
      #expect(metadata.map(\.?.priority) == [3, 4])
      #expect(metadata.map(\.?.remaining) == [.seconds(5), .seconds(5)])
      #expect(metadata[0]?.entries == ["app": "test", "service": "yes"])
    }
  }

  @Test func `a fresh key is another for each call, and the same for each sending`() async throws {
    let method = RawMethod.raw(1, RequestPolicy(idempotency: .freshKey))
    try await Scene.run { scene in
      try await scene.client.connect()
      scene.server.on(1, [.reset, .reply([1]), .reply([2])])
      #expect(try await scene.api.call(method, []) == [1])
      #expect(try await scene.api.call(method, []) == [2])
      let keys = scene.server.requests(of: 1).map { $0.metadata?.idempotencyKey }
      #expect(keys.count == 3)
      #expect(keys[0]?.count == 16 && keys[0] == keys[1] && keys[1] != keys[2])
    }
  }

  @Test func `an impossible configuration is named`() async throws {
    let client = try LongLinkClient(to: "10.0.0.1", port: 9)
    let error = #expect(throws: LongLinkError.self) {
      try APIClient(client, APIConfiguration(cacheBytes: -1))
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
      for policy in [RequestPolicy(), .reading] {
        let method = APIMethod<Unspeakable, [UInt8]>(
          1, returning: [UInt8].self, policy: policy)
        let error = try await failure { try await scene.api.call(method, Unspeakable()) }
        #expect(error.code == .encodingFailed && error.delivery == .notSent)
      }
    }
  }
}
