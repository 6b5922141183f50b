// SPDX-License-Identifier: Apache-2.0

import LongLink
import LongLinkServer
import LongLinkTestSupport
import LongLinkTesting
import LongLinkTransport
import Testing
import LongLinkDialects

/// The dialects that tests of behaviour speak.
enum Spoken: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case guarded
  case bare
  case small
  case lines

  var testDescription: String { rawValue }

  /// The dialect, with these heartbeats.
  func description(
    every interval: Duration = .seconds(30), timeout: Duration = .seconds(10)
  ) throws -> FrameDialect {
    let dialect =
      switch self {
      case .guarded: try FrameDialect.guarded(tokenWidth: 4)
      case .bare: FrameDialect.bare
      case .small: try FrameDialect.small()
      case .lines: try FrameDialect.lines()
      }
    let old = dialect.heartbeat
    return try dialect.with(
      heartbeat: FrameDialect.HeartbeatFrames(
        client: old.client, server: old.server, interval: interval, timeout: timeout))
  }

  /// The token of a client.
  var token: [UInt8] { self == .guarded ? [1, 2, 3, 4] : [] }

  /// A type that requests may have.
  var echo: MessageType { 0x500 }
  var hang: MessageType { 0x501 }
  var other: MessageType { 0x502 }
  /// A type of a server's pushes.
  var serverPush: MessageType {
    switch self {
    case .guarded: 1
    case .bare: 2
    case .small: 0xF001
    case .lines: 3
    }
  }

  /// Whether a client can ask for a sign of life.
  var clientPings: Bool { self == .bare || self == .small }
  var serverPings: Bool { self != .small }
}

extension FrameDialect {
  /// Frames between line ends, which no body may hold.
  static func lines(
    inside: FrameLayout.Delimiter.Inside = .escaped(0x5C), serials: ClosedRange<UInt32> = 10...1000,
    delimiter: [UInt8] = [0x0D, 0x0A]
  ) throws -> FrameDialect {
    var fields: [FrameLayout.Field] = [.constant(2, 0xABCD), .type(2), .serial(4)]
    if inside == .lengthChecked { fields.append(.length(4)) }
    fields.append(.checksum(4, .adler32, over: .headerAndBody))
    let layout = try FrameLayout(
      request: FrameLayout.Shape(header: fields),
      response: FrameLayout.Shape(header: fields + [.code(2)]),
      delimiter: FrameLayout.Delimiter(delimiter, inside: inside))
    return try FrameDialect(
      name: "lines", layout: layout, serials: Serials(client: serials),
      heartbeat: HeartbeatFrames(server: Ping(type: 1, serials: 1...9)),
      pushes: Pushes(fromServer: [2...3]),
      cancel: Cancel(type: 4, target: inside == .refused ? .serial : .body),
      codes: Codes(
        success: [200], failure: 500, errors: [DialectErrorCode(429, "busy", native: .overloaded)]),
      maximumBody: 4096)
  }

  /// The same with some other rules.
  func with(
    heartbeat: HeartbeatFrames? = nil, cancel: Cancel?? = nil, unknownSerial: UnknownSerial? = nil
  ) throws -> FrameDialect {
    try FrameDialect(
      name: name, layout: layout, serials: serials, responseType: responseType,
      heartbeat: heartbeat ?? self.heartbeat, pushes: pushes, cancel: cancel ?? self.cancel,
      codes: codes, unknownSerial: unknownSerial ?? self.unknownSerial, maximumBody: maximumBody)
  }
}

extension Stage {
  /// A server and a client that speak a dialect.
  func pair(
    _ spoken: Spoken, setUp: (LongLinkServer) -> Void,
    configure: (inout ClientConfiguration) -> Void = { _ in }
  ) async throws -> (server: LongLinkServer, client: LongLinkClient) {
    // Real time is not the subject.
    let description =
      simulation == nil
      ? try spoken.description() : try spoken.description(every: .seconds(2), timeout: .seconds(1))
    let server = try await serve(setUp: setUp) { $0.dialect = .custom(description) }
    let client = try client(of: server) {
      $0.dialect = .custom(description, token: spoken.token)
      configure(&$0)
    }
    return (server, client)
  }

  /// A scripted server, and a client of it; both native without a dialect.
  func scripted(
    _ description: FrameDialect? = nil, token: [UInt8] = [],
    configure: (inout ClientConfiguration) -> Void = { _ in }
  ) async throws -> (server: SimulatedServer, client: LongLinkClient) {
    let address: SocketAddress =
      switch environment {
      case .simulated, .short, .bothWays, .loopback: .ipv4(127, 0, 0, 1, port: 0)
      case .unix: .unix(path: "/tmp/longlink-\(UInt64.random(in: 0 ... .max))")
      }
    let server = try await SimulatedServer.start(
      on: serverLoop, at: address, dialect: description.map { .custom($0) } ?? .native)
    let endpoint: Endpoint =
      if let path = server.address.path {
        .unix(path: path)
      } else {
        server.endpoint
      }
    let client = try client(to: [endpoint]) {
      $0.dialect = description.map { .custom($0, token: token) } ?? .native
      $0.reconnect.afterClose = .milliseconds(5)
      $0.reconnect.afterRefused = .milliseconds(5)
      configure(&$0)
    }
    return (server, client)
  }

  func scripted(
    _ spoken: Spoken, configure: (inout ClientConfiguration) -> Void = { _ in }
  ) async throws -> (server: SimulatedServer, client: LongLinkClient) {
    try await scripted(
      spoken.description(), token: spoken.token, configure: configure)
  }
}
