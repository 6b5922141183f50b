// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkTestSupport
import Synchronization
import Testing

/// Handshakes of TLS that stand still, against a `longlink serve` with its defaults.
///
/// `make attacks` asks for figures as well: beside them, an honest client's 99th percentile is at
/// most twice its own without them, and a new one connects within two seconds.
@Suite(.serialized, .timeLimit(.minutes(15)), .unless(AttackedServer.problem))
struct HandshakeAttackTests {
  private struct Report: Decodable {
    struct Latency: Decodable {
      let p99: Double
    }

    let answered: UInt64
    let failed: UInt64
    let latency: Latency
  }

  /// A folder with certificates, which is removed in the end.
  private final class Certificates: Sendable {
    let path = FileManager.default.temporaryDirectory
      .appending(path: "longlink-handshakes-\(UUID().uuidString)").path

    init() async throws {
      let made = try await Tool(["certificates", path]).finish()
      try #require(made.code == 0, "\(made.errors)")
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var client: [String] { ["--tls", "--tls-ca", "\(path)/ca.pem"] }
    var server: [String] {
      ["--tls-certificate", "\(path)/server.pem", "--tls-key", "\(path)/server-key.pem"]
    }
  }

  @Test func `5000 handshakes that stand still slow no client down`() async throws {
    let certificates = try await Certificates()
    let server = try await RunningServer(certificates.server)
    let hello = try await Self.hello(certificates)
    let memory = try AttackedServer.kibibytes("VmRSS", of: server.tool.id)
    let alone = try await bench(server, certificates)
    let flood = Flood(port: server.port, hello: hello)
    let seconds = alone.seconds
    Thread.detachNewThread { flood.run(5_000, over: seconds) }
    async let beside = bench(server, certificates)
    var slowest = 0.0
    var calls = 0
    // New clients connect while the handshakes come, and while the last thousand stand still.
    repeat {
      let began = DispatchTime.now().uptimeNanoseconds
      let call = try await Tool(
        ["call", "1", "--port", server.port, "--text", "x"] + certificates.client
      ).finish()
      #expect(call.code == 0, "\(call.errors)")
      slowest = max(slowest, Double(DispatchTime.now().uptimeNanoseconds - began) / 1e9)
      calls += 1
    } while calls < 3 || !flood.isOver
    let report = try await beside.report
    #expect(flood.opened == 5_000)
    #expect(report.failed == 0 && report.answered > 0)
    let peak = try AttackedServer.kibibytes("VmHWM", of: server.tool.id) - memory
    print(
      """
      attack: 5000 handshakes, p99 \(report.latency.p99) ms, alone \(alone.report.latency.p99) ms; \
      the slowest of \(calls) new clients took \(slowest) s; \(peak / 1_024) MiB more at most
      """)
    // The documented number, for each of 1,000.
    #expect(peak / 1_024 < 139, "MiB")
    flood.end()
    server.tool.send(SIGKILL)
    #expect(await server.tool.finish().errors.utf8.count < 200_000)
    guard ProcessInfo.processInfo.environment["LONGLINK_ATTACK_SECONDS"] != nil else { return }
    #expect(slowest < 2, "seconds")
    #expect(report.latency.p99 <= 2 * max(alone.report.latency.p99, 1), "milliseconds")
  }

  /// An open loop of small requests over one connection.
  private func bench(
    _ server: RunningServer, _ certificates: Certificates
  ) async throws -> (report: Report, seconds: Double) {
    let seconds = 6.0
    let bench = try await Tool(
      [
        "bench", "--json", "--port", server.port, "--rate", "200", "--duration", "\(seconds)",
        "--in-flight", "50",
      ] + certificates.client
    ).finish()
    try #require(bench.code == 0, "\(bench.errors)")
    return (try JSONDecoder().decode(Report.self, from: Data(bench.output)), seconds)
  }

  /// What a real client says first.
  private static func hello(_ certificates: Certificates) async throws -> [UInt8] {
    let (listener, port) = try RawClient.listen()
    defer { close(listener) }
    let call = try Tool(["call", "1", "--port", port, "--text", "x"] + certificates.client)
    let bytes = await onThread { () -> [UInt8] in
      let connection = accept(listener, nil, nil)
      defer { close(connection) }
      var bytes = [UInt8](repeating: 0, count: 4_096)
      // The kernel writes at most as many bytes as the array has.
      let count = unsafe bytes.withUnsafeMutableBytes { buffer in
        unsafe recv(connection, buffer.baseAddress, buffer.count, 0)
      }
      return Array(bytes.prefix(max(0, count)))
    }
    call.send(SIGKILL)
    try #require(bytes.first == 0x16 && bytes.count > 200)
    return bytes
  }
}

/// Connections that begin a handshake and do not go on with it.
private final class Flood: Sendable {
  private let port: String
  private let hello: [UInt8]
  private let state = Mutex((open: [Int32](), opened: 0, isOver: false))

  init(port: String, hello: [UInt8]) {
    self.port = port
    self.hello = hello
  }

  deinit { end() }

  var opened: Int { state.withLock { $0.opened } }
  var isOver: Bool { state.withLock { $0.isOver } }

  /// Opens connections, spread over a time; the server drops the oldest of those beyond 1,000.
  func run(_ count: Int, over seconds: Double) {
    let began = DispatchTime.now().uptimeNanoseconds
    for index in 0..<count {
      guard let connection = try? RawClient(port: port, from: UInt8(2 + index % 250)).connection
      else { break }
      // Nothing, a part, and all of a hello, which the server answers.
      switch index % 4 {
      case 0: break
      case 1, 2: connection.write(Array(hello.dropLast(1 + index % 100)))
      default: connection.write(hello)
      }
      let former = state.withLock { state in
        state.opened += 1
        state.open.append(connection.descriptor)
        return state.open.count > 1_100 ? state.open.removeFirst() : nil
      }
      if let former { close(former) }
      // An attacker keeps its own pace; nothing waits for this.
      let due = began + UInt64(Double(index) / Double(count) * seconds * 1e9)
      let now = DispatchTime.now().uptimeNanoseconds
      if due > now { usleep(UInt32((due - now) / 1_000)) }
    }
    state.withLock { $0.isOver = true }
  }

  /// Closes all of them.
  func end() {
    let open = state.withLock { state in
      defer { state.open = [] }
      return state.open
    }
    for descriptor in open { close(descriptor) }
  }
}
