// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A process that speaks the protocol without any code of this package.
enum PythonPeer {
  private static let root = VectorStream.vectors.deletingLastPathComponent()
    .deletingLastPathComponent()

  private static let found = Result { try find() }

  /// Why there can be none here; nil where there can.
  static let problem: String? =
    switch found {
    case .success: nil
    case .failure(let error): "\(error)"
    }

  private struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// The interpreter that the project's scripts choose.
  private static func find() throws -> URL {
    let end = try SpawnedProcess.run([
      root.appending(path: "Scripts/python.sh").path, "-c", "import sys; print(sys.executable)",
    ])
    guard end.code == 0 else { throw Failure(description: end.errors) }
    return URL(filePath: end.text.trimmingCharacters(in: .newlines))
  }

  /// Starts a program of `Protocols/Peers`.
  static func start(_ program: String, _ arguments: String...) throws -> Tool {
    let script = root.appending(path: "Protocols/Peers/\(program).py").path
    return try Tool(
      ["-B", script] + arguments, program: try found.get())
  }

  /// Python itself.
  static var program: URL { get throws { try found.get() } }

  /// Starts the HTTP server of the library's own tests, and returns its port. Its standard input is
  /// held open.
  static func startServices() async throws -> (server: Tool, port: String) {
    let script = root.appending(path: "Tests/LongLinkHTTPTests/Plain/Peers/services.py").path
    let server = try Tool(["-B", script], holdsInput: true, program: try found.get())
    return (server, await server.nextLine() ?? "")
  }

  /// The names of all steps of a program.
  static func steps(_ program: String) async throws -> [String] {
    try await start(program, "list").finish().lines
  }
}
