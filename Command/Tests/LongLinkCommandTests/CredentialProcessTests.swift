// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkDemoMessages
import Testing

/// Processes whose credentials expire every two seconds, over several of them.
@Suite(.timeLimit(.minutes(15))) struct CredentialProcessTests {
  @Test func `a stream and a listener outlast many credentials without a gap`() async throws {
    let server = try await RunningServer("--token", "ann=first", "--credential-validity", "2")
    let files = (0..<2).map { _ in
      FileManager.default.temporaryDirectory.appending(component: "longlink-\(UUID())").path
    }
    defer { for file in files { try? FileManager.default.removeItem(atPath: file) } }
    let known = ["--port", server.port, "--token", "first"]
    let listener = try Tool(["listen", "--count", "16", "--identity", files[0]] + known)
    let request = try CountRequest(count: 80, intervalMilliseconds: 100).hex
    let stream = try Tool(["stream", "6", "--hex", request, "--identity", files[1]] + known)
    #expect(await stream.nextLine() != nil)
    while try await server.peers("--token", "first").clients != 3 {
      try Task.checkCancellation()
    }
    for number in 1...16 {
      try await server.broadcast(7, Array("\(number)".utf8), "--token", "first")
      // The passing of time is the subject.
      try await Task.sleep(for: .milliseconds(500))
    }
    let items = await stream.finish()
    #expect(items.code == 0 && items.lines.count == 79 && items.errors.isEmpty, "\(items.errors)")
    let pushes = await listener.finish()
    #expect(pushes.code == 0 && pushes.errors.isEmpty, "\(pushes.errors)")
    #expect(pushes.lines == (1...16).map { "\($0)" })
  }
}
