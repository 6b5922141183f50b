// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
import LongLinkDemoMessages
import LongLinkProtobufC
import Testing

/// A `longlink serve` that accepts connections on a free port.
struct RunningServer {
  let tool: Tool
  /// As text, since it goes into arguments.
  let port: String

  init(_ options: String...) async throws {
    try await self.init(options)
  }

  init(_ options: [String], environment: [String: String] = [:]) async throws {
    tool = try Tool(
      ["serve"] + (options.contains("--port") ? [] : ["--port", "0"]) + options,
      environment: environment)
    let line = try #require(await tool.nextLine())
    let prefix = "listening on 127.0.0.1:"
    try #require(line.hasPrefix(prefix))
    port = String(line.dropFirst(prefix.count))
  }

  /// Runs `longlink call` against it.
  func call(_ arguments: String..., input: [UInt8] = []) async throws -> Finished {
    try await Tool(["call", "--port", port] + arguments, input: input).finish()
  }

  /// Starts a `longlink call` that sleeps in the server, and returns when it does, or has: on a
  /// busy machine it may be over before anybody looks.
  func startSleep(milliseconds: UInt32) async throws -> Tool {
    var received = try await stats().requestsReceived
    let request = try SleepRequest(milliseconds: milliseconds).hex
    let call = try Tool(["call", "2", "--port", port, "--hex", request, "--timeout", "100"])
    // Each look is a request too.
    repeat {
      received += 1
      try Task.checkCancellation()
    } while try await stats().requestsReceived == received
    return call
  }

  func stats() async throws -> StatsReply {
    let call = try await call("5")
    try #require(call.code == 0, "\(call.errors)")
    return try StatsReply(copying: call.output)
  }

  /// Pushes a body to all clients.
  func broadcast(_ type: UInt32, _ body: [UInt8], _ options: String...) async throws {
    let request = try BroadcastRequest(messageType: type, body: body).hex
    let call = try await Tool(["call", "11", "--port", port, "--hex", request] + options).finish()
    try #require(call.code == 0, "\(call.errors)")
  }

  /// How many clients and connections there are, with the one that asks.
  func peers(_ options: String...) async throws -> PeersReply {
    let call = try await Tool(["call", "19", "--port", port] + options).finish()
    try #require(call.code == 0, "\(call.errors)")
    return try PeersReply(copying: call.output)
  }
}

extension ProtobufCBody {
  /// The message as the option `--hex` takes it.
  var hex: String {
    get throws {
      try encodedBytes().map { byte in
        let digits = String(byte, radix: 16)
        return digits.count == 1 ? "0" + digits : digits
      }.joined()
    }
  }
}
