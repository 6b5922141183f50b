// SPDX-License-Identifier: Apache-2.0

#if GRPC

import ArgumentParser
import BenchSupport
import Foundation
import GRPCCore
import GRPCNIOTransportHTTP2

/// grpc-swift over its NIO transport: unary calls whose messages are plain bytes.
@main
struct GRPCPeer: AsyncParsableCommand {
  static let configuration = CommandConfiguration(subcommands: [Serve.self, Generate.self])

  static let method = MethodDescriptor(fullyQualifiedService: "bench.Echo", method: "Echo")

  struct Serve: AsyncParsableCommand {
    func run() async throws {
      let requests = RequestCount()
      let server = GRPCServer(
        transport: .http2NIOPosix(
          address: .ipv4(host: "127.0.0.1", port: 0), transportSecurity: .plaintext),
        services: [Echo(requests: requests)])
      Task { try await server.serve() }
      let address = try await server.listeningAddress
      guard let port = address?.ipv4?.port else { Meter.fail("the server does not listen") }
      Serving.listening(on: UInt16(port))
      Serving.waitForTheEnd { requests.value }
    }
  }

  struct Generate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "load")
    @OptionGroup var load: Load

    func run() async throws {
      let (load, meter) = (load, Meter(load))
      let all = meter.lanes
      for first in stride(from: 0, to: all.count, by: load.inFlight) {
        let client = GRPCClient(
          transport: try .http2NIOPosix(
            target: .ipv4(address: "127.0.0.1", port: Int(load.port)),
            transportSecurity: .plaintext))
        Task { try await client.runConnections() }
        for lane in all[first..<first + load.inFlight] {
          Task {
            do {
              try await converse(client, lane)
            } catch {
              Meter.fail("\(error)")
            }
          }
        }
      }
      let outcome = await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: meter.measure(load)) }
      }
      try outcome.print()
      Foundation.exit(0)
    }
  }
}

private func converse(_ client: GRPCClient<some ClientTransport>, _ lane: Lane) async throws {
  while true {
    let request = lane.begin()
    let answer = try await client.unary(
      request: ClientRequest(message: lane.body), descriptor: GRPCPeer.method,
      serializer: PlainBytes(), deserializer: PlainBytes(), options: .defaults
    ) { try $0.message }
    guard answer.withUnsafeBytes({ lane.answered(request, with: $0) }) else { return }
  }
}

private struct Echo: RegistrableRPCService {
  let requests: RequestCount

  func registerMethods(with router: inout RPCRouter<some ServerTransport>) {
    router.registerHandler(
      forMethod: GRPCPeer.method, deserializer: PlainBytes(), serializer: PlainBytes()
    ) { request, _ in
      requests.oneMore()
      let message = try await ServerRequest(stream: request).message
      return StreamingServerResponse(single: ServerResponse(message: message))
    }
  }
}

/// Passes messages through, because they are bytes.
private struct PlainBytes: MessageSerializer, MessageDeserializer {
  func serialize<Bytes: GRPCContiguousBytes>(_ message: [UInt8]) throws -> Bytes { Bytes(message) }

  func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> [UInt8] {
    bytes.withUnsafeBytes { Array($0) }
  }
}

#else

import BenchSupport

/// Replaces the peer in builds without the trait `GRPC`.
@main
struct GRPCPeer {
  static func main() {
    Meter.fail("this was built without the trait GRPC")
  }
}

#endif
