// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
import NIOCore
import NIOPosix

/// Servers that nobody here wrote, as processes of their own.
enum Programs {
  static let apache = find(["/usr/sbin/apache2", "/usr/sbin/httpd", "/usr/local/bin/httpd"])
  static let nginx = find(["/usr/sbin/nginx", "/usr/local/bin/nginx", "/opt/homebrew/bin/nginx"])
  static let apacheModules = find(["/usr/lib/apache2/modules", "/usr/libexec/apache2"])

  static let apacheProblem = apache == nil || apacheModules == nil ? "there is no apache2" : nil
  static let nginxProblem = nginx == nil ? "there is no nginx" : nil

  private static func find(_ paths: [String]) -> String? {
    paths.first { FileManager.default.fileExists(atPath: $0) }
  }

  private static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// Why there is no Python; nil where there is.
  static let pythonProblem: String? = {
    do {
      let program = try LocalProgram(
        root.appending(path: "Scripts/python.sh").path, ["-c", "print(1)"])
      defer { program.stop() }
      return program.firstLine() == "1" ? nil : "there is no Python"
    } catch {
      return "\(error)"
    }
  }()

  /// Runs a body with Python's server, and its port.
  static func withPython(_ body: (Int) async throws -> Void) async throws {
    let script = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "Peers/services.py").path
    let program = try LocalProgram(
      root.appending(path: "Scripts/python.sh").path, ["-B", script])
    defer { program.stop() }
    try await body(Int(program.firstLine()) ?? 0)
  }

  /// Runs a body with a server that has a configuration, made of a folder and a free port.
  static func with(
    _ program: String?, _ configuration: (String, Int) throws -> String,
    arguments: (String) -> [String], body: (Int, String) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "longlink-program-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let port = try await freePort()
    try configuration(folder, port).write(
      toFile: folder + "/server.conf", atomically: true, encoding: .utf8)
    let process = try LocalProgram(program ?? "", arguments(folder))
    defer { process.stop() }
    for _ in 0..<10_000 {
      if let channel = try? await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .connect(host: "127.0.0.1", port: port).get()
      {
        try await channel.close()
        break
      }
      try await Task.sleep(for: .milliseconds(2))
    }
    try await body(port, folder)
  }

  private static func freePort() async throws -> Int {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    let port = channel.localAddress?.port ?? 0
    try await channel.close()
    return port
  }
}

/// A process that ends with whoever started it.
final class LocalProgram {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  init(_ path: String, _ arguments: [String]) throws {
    process.executableURL = URL(filePath: path)
    process.arguments = arguments
    process.standardInput = input
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  func firstLine() -> String {
    var line: [UInt8] = []
    while let byte = try? output.fileHandleForReading.read(upToCount: 1)?.first, byte != 10 {
      line.append(byte)
    }
    return String(decoding: line, as: UTF8.self)
  }

  func stop() {
    try? input.fileHandleForWriting.close()
    if process.isRunning { process.terminate() }
    // Not `waitUntilExit`, which needs a thread with a run loop.
    for _ in 0..<2000 where process.isRunning { usleep(1000) }
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
  }
}
#endif
