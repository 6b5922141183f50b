// SPDX-License-Identifier: Apache-2.0

#if Operations
import LongLink
import LongLinkCore
import LongLinkServer
import LongLinkTestSupport
import NIOCore
import Testing

/// What the port says of connections, and does to them.
@Suite struct ConnectionTests {
  @Test func `an open connection is described`() async throws {
    try await OpsStage.run { stage in
      let client = try await stage.client { $0.name = "till 7" }
      let hanging = Task { try? await client.request(OpsStage.hang, []) }
      let stream = client.stream(OpsStage.endless, [])
      var items = stream.makeAsyncIterator()
      _ = try await items.next()
      try await until {
        let page: ConnectionPage = try await stage.json("/connections")
        return page.connections.first?.inFlight == 2
      }
      let page: ConnectionPage = try await stage.json("/connections")
      #expect(page.connections.count == 1 && page.next == nil && page.incomplete == nil)
      let row = try #require(page.connections.first)
      #expect(row.id > 0 && row.state == "open" && row.name == "till 7")
      #expect(row.peer.hasPrefix("127.0.0.1:"))
      #expect(row.principal == nil && row.tls == nil && row.reason == nil)
      #expect(row.bytesIn > 0 && row.bytesOut > 1_000)
      #expect(row.features.contains("streams") && row.features.contains("metadata"))
      #expect(row.streams.count == 1 && row.streams[0].method == "5")
      #if os(Linux)
      #expect(row.roundTripMs.map { $0 > 0 && $0 < 10_000 } == true)
      #endif
      let alone: ConnectionPage.Row = try await stage.json("/connections/\(row.id)")
      #expect(alone.id == row.id)
      // What there is none of is null.
      let text = try await stage.request("/connections", accept: "application/json").body
      #expect(text.contains("\"principal\":null") && text.contains("\"next\":null"))
      hanging.cancel()
    }
  }

  @Test func `pages go on after the last connection`() async throws {
    try await OpsStage.run(server: { $0.loops = 2 }) { stage in
      for _ in 0..<7 { _ = try await stage.client() }
      var (found, after, pages) = ([UInt64](), UInt64?(0), 0)
      while let last = after {
        let page: ConnectionPage = try await stage.json("/connections?limit=3&after=\(last)")
        #expect(page.connections.count <= 3)
        found += page.connections.map(\.id)
        after = page.next
        pages += 1
      }
      #expect(pages == 3 && found.count == 7)
      #expect(found == found.sorted() && Set(found).count == 7)
      let exact: ConnectionPage = try await stage.json("/connections?limit=7")
      #expect(exact.connections.count == 7 && exact.next == nil)
      let text = try await stage.request("/connections?limit=3").body
      #expect(text.contains("more: after=\(found[2])"))
    }
  }

  @Test func `a page ends at 60 KiB, and goes on`() async throws {
    let name = String(repeating: "\u{1F6A2}", count: 60)
    try await OpsStage.run { stage in
      for _ in 0..<150 { _ = try await stage.client { $0.name = name } }
      for accept in ["application/json", "text/html", "text/plain"] {
        let reply = try await stage.request("/connections?limit=200", accept: accept)
        #expect(reply.body.utf8.count < 65_536)
      }
      var (count, after, pages) = (0, UInt64?(0), 0)
      while let last = after {
        let page: ConnectionPage = try await stage.json("/connections?limit=200&after=\(last)")
        count += page.connections.count
        after = page.next
        pages += 1
      }
      #expect(count == 150)
      #expect(pages == 2)
    }
  }

  @Test func `a drain lets what runs end`() async throws {
    try await OpsStage.run { stage in
      let client = try await stage.client()
      let hanging = Task { try? await client.request(OpsStage.hang, []) }
      try await until { try await stage.metric("longlink_requests_running") == 1 }
      let page: ConnectionPage = try await stage.json("/connections")
      let id = try #require(page.connections.first?.id)
      let reply = try await stage.send("POST", "/connections/\(id)/drain")
      #expect(reply.status == 202)
      #expect(try reply.json(as: ConnectionPage.Row.self).state == "draining")
      let row: ConnectionPage.Row = try await stage.json("/connections/\(id)")
      #expect(row.state == "draining" && row.inFlight == 1)
      #expect(try await stage.metric("longlink_connections{state=\"draining\"}") == 1)
      hanging.cancel()
      try await untilClosed(id, "drained", stage)
    }
  }

  @Test func `a drained client has its next connection before it leaves this one`() async throws {
    let events = Watched<[String]>([])
    try await OpsStage.run(routes: { server in
      server.onConnectionOpened { _ in events.change { $0.append("opened") } }
      server.onConnectionEnded { _ in events.change { $0.append("ended") } }
    }) { stage in
      _ = try await stage.client()
      #expect(try await stage.send("POST", "/connections/1/drain").status == 202)
      await events.until { $0.count == 3 }
      #expect(events.value == ["opened", "opened", "ended"])
      try await untilClosed(1, "drained", stage)
    }
  }

  @Test func `the first reason to leave is told, unless an operator ends the connection`()
    async throws
  {
    try await OpsStage.run(server: {
      $0.identity.authenticate = { _ in Authentication(Principal("one")) }
    }) { stage in
      let client = try await stage.client { $0.identity.credential = { Array("one".utf8) } }
      let hanging = Task { try? await client.request(OpsStage.hang, []) }
      try await until { try await stage.metric("longlink_requests_running") == 1 }
      #expect(await stage.server.endConnections(of: "one", within: .seconds(3_600)) == 1)
      #expect(try await stage.send("POST", "/connections/1/drain").status == 202)
      hanging.cancel()
      try await untilClosed(1, "credential", stage)

      let again = Task { try? await client.request(OpsStage.hang, []) }
      try await until { try await stage.metric("longlink_requests_running") == 1 }
      let page: ConnectionPage = try await stage.json("/connections")
      let id = try #require(page.connections.last?.id)
      for command in ["drain", "close"] {
        #expect(try await stage.send("POST", "/connections/\(id)/\(command)").status == 202)
      }
      try await untilClosed(id, "operator", stage)
      again.cancel()
    }
  }

  @Test func `a time that has changed holds for a proxy's next connection`() async throws {
    try await OpsStage.run(server: {
      $0.addresses.proxies = [AddressRange("127.0.0.1")!]
      $0.timeouts.firstFrame = .seconds(3_600)
    }) { stage in
      var changed = stage.server.configuration
      changed.timeouts.firstFrame = .milliseconds(50)
      stage.server.change(to: changed)
      let port = Int(stage.server.endpoint.description.split(separator: ":").last ?? "") ?? 0
      // It names no client.
      let proxy = try await RawPeer.connect(to: port)
      try await until { proxy.heard.value.isClosed }
      proxy.close()
    }
  }

  @Test func `a limit that has changed holds for absent clients`() async throws {
    let left = Watched(0)
    try await OpsStage.run(
      server: { $0.identity.linger = .seconds(3_600) },
      routes: { server in
        server.onDisconnect { _ in left.change { $0 += 1 } }
      }
    ) { stage in
      let clients = [try await stage.client(), try await stage.client()]
      var changed = stage.server.configuration
      changed.limits.maxConnections = 1
      stage.server.change(to: changed)
      for client in clients { await client.close(within: .zero) }
      // There is room for one absent client.
      try await until { left.value == 1 }
    }
  }

  @Test func `a close ends it at once, and says what was under way`() async throws {
    try await OpsStage.run { stage in
      let client = try await stage.client()
      let hanging = (0..<20).map { _ in Task { try? await client.request(OpsStage.hang, []) } }
      try await until { try await stage.metric("longlink_requests_running") == 20 }
      let reply = try await stage.send("POST", "/connections/1/close", body: "{}")
      #expect(reply.status == 202)
      #expect(try reply.json(as: ConnectionPage.Row.self).id == 1)
      let row = try await untilClosed(1, "operator", stage)
      #expect(row.underWayCount == 20)
      let underWay = try #require(row.underWay)
      #expect(underWay.count == 16 && underWay.allSatisfy { $0.method == "Hang" })
      #expect(underWay.map(\.serial) == underWay.map(\.serial).sorted())
      for command in ["close", "drain"] {
        #expect(try await stage.send("POST", "/connections/1/\(command)").status == 409)
        #expect(try await stage.send("POST", "/connections/999/\(command)").status == 404)
      }
      #expect(try await stage.request("/connections/999").status == 404)
      for task in hanging { task.cancel() }
    }
  }

  @discardableResult
  private func untilClosed(
    _ id: UInt64, _ reason: String, _ stage: OpsStage
  ) async throws -> ConnectionPage.Row {
    try await until {
      let row: ConnectionPage.Row = try await stage.json("/connections/\(id)")
      return row.state == "closed"
    }
    let row: ConnectionPage.Row = try await stage.json("/connections/\(id)")
    #expect(row.reason == reason)
    #expect(row.endedMsAgo != nil && row.detail?.isEmpty == false)
    let page: ConnectionPage = try await stage.json("/connections?state=closed")
    #expect(page.connections.contains { $0.id == id })
    return row
  }

  @Test func `the reason of each end is told`() async throws {
    try await OpsStage.run(server: {
      $0.timeouts.firstFrame = .seconds(2)
      $0.identity.authenticate = { request in
        let name = String(decoding: request.credential ?? [], as: UTF8.self)
        if name == "nobody" { throw Rejection(.forbidden, "not you") }
        return Authentication(
          Principal(name), validity: name == "brief" ? .milliseconds(300) : nil)
      }
      $0.identity.credentialGrace = .zero
    }) { stage in
      let port = Int(stage.server.endpoint.description.split(separator: ":").last ?? "") ?? 0
      // In the order of their numbers.
      let silent = try await RawPeer.connect(to: port)
      await silent.hearsEnd()
      try await untilClosed(1, "first_frame", stage)

      let wrong = try await RawPeer.connect(to: port)
      wrong.send([UInt8](repeating: 0xFF, count: 64))
      await wrong.heard.until { !$0.bytes.isEmpty }
      wrong.close()
      let violation = try await untilClosed(2, "violation", stage)
      #expect(violation.detail?.contains("lengthOverLimit") == true)
      #expect(violation.detail?.unicodeScalars.count == 64)

      let leaving = try await stage.client { $0.identity.credential = { Array("one".utf8) } }
      await leaving.close(within: .zero)
      let left = try await untilClosed(3, "peer", stage)
      #expect(left.principal == "one")

      // These come back.
      _ = try await stage.client { $0.identity.credential = { Array("brief".utf8) } }
      _ = try? await stage.client { $0.identity.credential = { Array("nobody".utf8) } }
      for reason in ["credential", "refused"] {
        try await until {
          let page: ConnectionPage = try await stage.json("/connections?state=closed")
          return page.connections.contains { $0.reason == reason }
        }
      }
    }
  }

  @Test func `connections on which nothing came do not drive out the others`() async throws {
    try await OpsStage.run { stage in
      let client = try await stage.client()
      await client.close(within: .zero)
      try await untilClosed(1, "peer", stage)
      let port = Int(stage.server.endpoint.description.split(separator: ":").last ?? "") ?? 0
      for _ in 0..<130 {
        let peer = try await RawPeer.connect(to: port)
        try await peer.channel.close()
      }
      try await until {
        try await stage.metric("longlink_connections_ended_total{reason=\"peer\"}") == 131
      }
      let page: ConnectionPage = try await stage.json("/connections?state=closed&limit=200")
      #expect(page.connections.count == 101)
      #expect(page.connections.first?.id == 1)
      #expect(page.connections.dropFirst().allSatisfy { $0.id > 31 })
    }
  }

  @Test func `neither violations nor clients that are refused drive out others`() async throws {
    try await OpsStage.run(server: {
      $0.identity.authenticate = { request in
        if request.credential != [1] { throw Rejection(.forbidden, "not you") }
        return Authentication(Principal("one"))
      }
    }) { stage in
      let client = try await stage.client { $0.identity.credential = { [1] } }
      await client.close(within: .zero)
      try await untilClosed(1, "peer", stage)
      let port = Int(stage.server.endpoint.description.split(separator: ":").last ?? "") ?? 0
      for _ in 0..<110 {
        let wrong = try await RawPeer.connect(to: port)
        wrong.send([UInt8](repeating: 0xFF, count: 64))
        await wrong.heard.until { !$0.bytes.isEmpty }
        wrong.close()
        _ = try? await stage.client { $0.identity.credential = { [2] } }
      }
      func ended(_ reason: String) async throws -> Double? {
        try await stage.metric("longlink_connections_ended_total{reason=\"\(reason)\"}")
      }
      try await until { try await ended("violation") == 110 }
      try await until { try await ended("refused") ?? 0 >= 110 }
      var (rows, after) = ([ConnectionPage.Row](), UInt64?(0))
      while let last = after {
        let page: ConnectionPage = try await stage.json(
          "/connections?state=closed&limit=200&after=\(last)")
        rows += page.connections
        after = page.next
      }
      #expect(rows.first?.id == 1 && rows.count(where: { $0.reason == "violation" }) == 100)
      // Clients come back, also between two pages.
      let refused = rows.count(where: { $0.reason == "refused" })
      #expect(refused >= 100 && refused < 110)
    }
  }

  @Test func `what clients say of themselves cannot do harm`() async throws {
    let name = "<script>alert('1')</script>\"&\u{1B}[31m\u{7}\r\nX: y\u{202E}"
    try await OpsStage.run { stage in
      _ = try await stage.client { $0.name = name }
      let gone = try await stage.client { $0.name = name + String(repeating: "x", count: 900) }
      await gone.close(within: .zero)
      try await untilClosed(2, "peer", stage)
      for path in [
        "/connections", "/connections?state=closed", "/connections/1", "/connections/2",
      ] {
        let html = try await stage.request(path, accept: "text/html").body
        #expect(!html.contains("<script") && html.contains("&lt;script&gt;"), "\(path)")
        #expect(!html.contains("\"&\u{1B}"))
        let text = try await stage.request(path).body
        #expect(text.contains("<script>"))
        for page in [html, text] {
          for scalar in ["\u{1B}", "\u{7}", "\r", "\u{202E}"] { #expect(!page.contains(scalar)) }
          #expect(!page.contains(String(repeating: "x", count: 65)))
        }
      }
      let row: ConnectionPage.Row = try await stage.json("/connections/2")
      #expect(row.name.unicodeScalars.count == 64 && name.hasPrefix(row.name.prefix(20)))
      let raw = try await stage.request("/connections/2", accept: "application/json").body
      for scalar in ["\u{1B}", "\u{7}", "\r", "\u{202E}"] { #expect(!raw.contains(scalar)) }
    }
  }
}
#endif
