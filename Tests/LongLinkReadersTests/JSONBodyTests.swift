// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkCore
import LongLinkJSON
import LongLinkServer
import LongLinkTesting
import Testing

@Suite struct JSONBodyTests {
  struct Search: Codable, Equatable, Sendable {
    var text: String
    var most: [String: Int] = [:]
  }

  struct Place: JSONPush, Equatable {
    static let pushType: MessageType = 9
    var name: String
    var height = 1.5
  }

  @Test func `a value has always the same bytes`() throws {
    let body = JSONBody(Search(text: "a/b é", most: ["b": 1, "a": 2]))
    let bytes = try body.encodedBytes()
    #expect(String(decoding: bytes, as: UTF8.self) == #"{"most":{"a":2,"b":1},"text":"a/b é"}"#)
    #expect(try body.encodedByteCount == bytes.count)
    #expect(try unsafe JSONBody<Search>(decoding: bytes.span.bytes) == body)
  }

  @Test(arguments: [
    ("", BodyError.Code.malformed), ("{", .malformed), (#"{"name":1,"height":1}"#, .wrongType),
    (#"{"name":"x"}"#, .wrongType), ("[]", .wrongType), ("\u{FF}", .malformed),
  ])
  func `what is not the value is an error`(text: String, code: BodyError.Code) {
    let bytes = Array(text.utf8)
    let error = #expect(throws: BodyError.self) {
      try unsafe JSONBody<Place>(decoding: bytes.span.bytes)
    }
    #expect(error?.code == code)
  }

  @Test func `a value without a form in JSON is not sent`() {
    let body = JSONBody(Place(name: "x", height: .nan))
    let error = #expect(throws: BodyError.self) { try body.encodedBytes() }
    #expect(error?.code == .notRepresentable)
    #expect(throws: BodyError.self) { try body.encodedByteCount }
  }

  private static let find = RPCMethod<JSONBody<Search>, JSONBody<[Place]>>(7)

  /// A server with a route of typed bodies, and one whose items are parts of a document.
  private func start(_ simulation: Simulation) async throws -> (LongLinkServer, LongLinkClient) {
    let server = try LongLinkServer(
      listen: .host("127.0.0.1", port: 9000), on: [simulation.mainLoop])
    server.route(Self.find) { search, request in
      try request.peer.pushNow(JSONBody(Place(name: "pushed")))
      return JSONBody([Place(name: search.value.text), Place(name: "b", height: 2)])
    }
    server.routeStream(8, .responseItems) { request, _, writer in
      let nodes = [#"{"name":"é","height":1}"#, #"{"name":"b","height":2}"#]
      let document = Array("<a>\(nodes.map { "<node>\($0)</node>" }.joined())".utf8)
      for place in stride(from: 0, to: document.count, by: 5) {
        try await writer.write(Array(document[place..<min(place + 5, document.count)]))
      }
      if request.body == [1] { try await writer.write(Array("<error>boom</error> ???".utf8)) }
      if request.body == [2] { throw Rejection(.conflict, "gone") }
      try await writer.write(Array("</a>".utf8))
      return [UInt8]()
    }
    server.routeStream(10, .requestItems) { _, items, _ in
      var names: [String] = []
      for try await item in items {
        names.append(try unsafe JSONBody<Place>(decoding: item.span.bytes).value.name)
      }
      return JSONBody(names)
    }
    try await server.start()
    let client = try LongLinkClient(
      to: .host("127.0.0.1", port: 9000), on: simulation.mainLoop)
    return (server, client)
  }

  @Test func `requests, responses, pushes and items are values`() async throws {
    let simulation = Simulation(seed: 1)
    try await simulation.run {
      let (server, client) = try await start(simulation)
      var pushes = client.pushes(of: JSONBody<Place>.self).makeAsyncIterator()
      let places = try await client.request(Self.find, JSONBody(Search(text: "a")))
      #expect(places.value == [Place(name: "a"), Place(name: "b", height: 2)])
      #expect(try await pushes.next()?.value == Place(name: "pushed"))
      let names = try await client.sendItems(10, [UInt8]()) { writer in
        for name in ["x", "y"] { try await writer.write(JSONBody(Place(name: name))) }
      }
      #expect(try unsafe JSONBody<[String]>(decoding: names.span.bytes).value == ["x", "y"])
      await client.close()
      await server.shutDown()
    }
  }

  @Test func `a document is read from the items of a stream`() async throws {
    let simulation = Simulation(seed: 2)
    try await simulation.run {
      let (server, client) = try await start(simulation)
      for request: UInt8 in [0, 1, 2] {
        let reader = DocumentReader(client.stream(8, [request]))
        var names: [String] = []
        do {
          for try await place in reader.elements(named: "node", as: Place.self, error: "error") {
            names.append(place.name)
          }
          #expect(request == 0)
        } catch let error as ReaderError {
          #expect(request == 1 && error.element?.text == "boom")
        } catch let error as LongLinkError {
          #expect(request == 2 && error.response == .conflict)
        }
        #expect(names == ["é", "b"])
      }
      await client.close()
      await server.shutDown()
    }
  }
}
