// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Files and streams that cannot be used are named, with the system's reason.
@Suite(.timeLimit(.minutes(15))) struct FileProblemTests {
  private func run(_ script: String, _ arguments: String...) async throws -> Finished {
    try await Tool(arguments, launcher: ["/bin/sh", "-c", script]).finish()
  }

  @Test func `a full standard output is named`() async throws {
    let server = try await RunningServer()
    let end = try await run(
      #"exec "$0" "$@" > /dev/full"#, "call", "1", "--port", server.port, "--text", "x")
    #expect(end.code == 1, "\(end.errors)")
    #expect(end.errors.contains("standard output: No space left on device (ENOSPC)"))
    #expect(!end.errors.contains("Domain"), "\(end.errors)")
  }

  @Test(arguments: [
    ["certificates", "/dev/null/x"],
    ["simulate", "storm", "--clients", "1", "--svg", "/dev/null/x"],
    ["simulate", "replay", "--seed", "3", "--quiet", "--svg", "/dev/null/x"],
  ])
  func `a file that cannot be written is named`(arguments: [String]) async throws {
    let end = try await Tool(arguments).finish()
    #expect(end.code == 1, "\(end.errors)")
    #expect(end.errors.contains("/dev/null/x: Not a directory (ENOTDIR)"), "\(end.errors)")
  }

  @Test(arguments: ["upload", "fetch http://127.0.0.1:1 --output", "certificates"])
  func `a name that is not UTF-8 is refused as one`(command: String) async throws {
    let end = try await run(#"exec "$0" \#(command) "$(printf 'caf\351')""#)
    #expect(end.code == 64, "\(end.errors)")
    #expect(end.errors.contains(#"the argument 'caf\xE9' is not UTF-8"#), "\(end.errors)")
  }
}
