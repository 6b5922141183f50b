// SPDX-License-Identifier: Apache-2.0

#if Operations
import Foundation
import LongLink
import LongLinkCLibrary
import LongLinkOps
import LongLinkServer
import LongLinkTestSupport
import Testing

/// What a service manager, such as systemd, hears of the server.
@Suite struct ServiceManagerTests {
  @Test(arguments: [true, false])
  func `it hears that the server is ready, and that it stops`(isAbstract: Bool) async throws {
    let manager = try Manager(isAbstract: isAbstract)
    try await OpsStage.run(
      { $0.environment = manager.variables() }, server: { $0.loops = 2 }, starts: false
    ) { stage in
      #expect(try await stage.request("/readyz").status == 503)
      #expect(manager.heard() == [])
      try await stage.server.start()
      try await until { manager.heard() == ["READY=1"] }
      let client = try await stage.client()
      let hanging = Task { try? await client.request(OpsStage.hang, []) }
      try await until { try await stage.metric("longlink_requests_running") == 1 }
      let end = Task { await stage.server.shutDown(within: .seconds(600)) }
      try await until { manager.heard() == ["READY=1", "STOPPING=1"] }
      hanging.cancel()
      await end.value
    }
    // It did not ask for a watchdog.
    #expect(manager.heard() == ["READY=1", "STOPPING=1"])
  }

  @Test func `the watchdog is fed while all loops live`() async throws {
    let manager = try Manager()
    try await OpsStage.run {
      $0.environment = manager.variables(["WATCHDOG_USEC": "20000", "WATCHDOG_PID": "\(getpid())"])
    } server: {
      $0.loops = 2
    } routes: {
      $0.route(RPCMethod<[UInt8], [UInt8]>(60, "Block")) { body, _ in
        Blocking.hold(body)
        return body
      }
    } _: { stage in
      try await until { manager.feeds > 5 }
      let client = try await stage.client()
      let blocking = Blocking.begin()
      let held = Task { try await client.request(60, blocking.body) }
      await blocking.untilHeld()
      // What was asked before is answered by then.
      #expect(try await stage.request("/livez").status == 503)
      let fed = manager.feeds
      #expect(try await stage.request("/livez").status == 503)
      #expect(manager.feeds == fed)
      blocking.release()
      _ = try await held.value
      try await until { manager.feeds > fed }
    }
    // While the server ends, its loops live.
    #expect(manager.heard().last { $0 != "WATCHDOG=1" } == "STOPPING=1")
  }

  @Test func `a parent's watchdog is not fed, and who is not asked says nothing`() async throws {
    let manager = try Manager()
    for variables in [
      manager.variables(["WATCHDOG_USEC": "20000", "WATCHDOG_PID": "\(getppid())"]),
      manager.variables(["WATCHDOG_USEC": "-1"]),
    ] {
      try await OpsStage.run {
        $0.environment = variables
      } _: { stage in
        try await until { manager.heard().contains("READY=1") }
        for _ in 0..<20 { #expect(try await stage.request("/livez").status == 200) }
      }
      #expect(manager.heard() == ["READY=1", "STOPPING=1"])
      manager.forget()
    }
    try await OpsStage.run {
      $0.environment = manager.variables()
      $0.notifiesServiceManager = false
    } _: { stage in
      let ready = try await stage.request("/readyz")
      #expect(ready.status == 200)
    }
    #expect(manager.heard() == [])
  }

  @Test func `it is tried until the socket is there, and logged once`() async throws {
    let lines = LogLines()
    let message = "Could not tell the service manager"
    let manager = try Manager(isBound: false)
    try await OpsStage.run {
      $0.environment = manager.variables()
      $0.logger = lines.logger
    } _: { stage in
      try await until { !lines.all(message).isEmpty }
      try manager.bind()
      try await until { manager.heard() == ["READY=1"] }
    }
    #expect(lines.all(message).count == 1)
    for socket in ["vsock:2:1", "/" + String(repeating: "x", count: 108)] {
      try await OpsStage.run {
        $0.environment = { $0 == "NOTIFY_SOCKET" ? socket : nil }
        $0.logger = lines.logger
      } _: { stage in
        let ready = try await stage.request("/readyz")
        #expect(ready.status == 200)
      }
    }
    #expect(lines.all(message).count == 3)
  }
}

/// A socket as a service manager has it.
private final class Manager: Sendable {
  private let name: String
  private let descriptor: CInt
  private let messages = Watched<[String]>([])

  init(isAbstract: Bool = true, isBound: Bool = true) throws {
    let id = UUID().uuidString
    name = isAbstract && isBound ? "@longlink-\(id)" : "/tmp/longlink-\(id)"
    descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
    if isBound { try bind() }
  }

  deinit {
    close(descriptor)
    if name.hasPrefix("/") { unsafe unlink(name) }
  }

  func bind() throws {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = name.hasPrefix("@") ? [0] + Array(name.utf8.dropFirst()) : Array(name.utf8)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
    let length = socklen_t(MemoryLayout<sockaddr_un>.offset(of: \.sun_path)! + bytes.count)
    let result = unsafe withUnsafeBytes(of: &address) { address in
      unsafe LongLinkCLibrary.bind(
        descriptor, address.baseAddress!.assumingMemoryBound(to: sockaddr.self), length)
    }
    try #require(result == 0)
  }

  /// The environment of a process that it has started.
  func variables(_ more: [String: String] = [:]) -> @Sendable (String) -> String? {
    let all = more.merging(["NOTIFY_SOCKET": name]) { first, _ in first }
    return { all[$0] }
  }

  /// All messages that have come so far.
  func heard() -> [String] {
    var bytes = [UInt8](repeating: 0, count: 256)
    while true {
      let count = unsafe recv(descriptor, &bytes, bytes.count, 0)
      guard count > 0 else { return messages.value }
      let text = String(decoding: bytes[..<count], as: UTF8.self)
      messages.change { $0.append(text) }
    }
  }

  /// How often the watchdog was fed.
  var feeds: Int { heard().count { $0 == "WATCHDOG=1" } }

  func forget() { messages.change { $0 = [] } }
}
#endif
