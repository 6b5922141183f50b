// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
import LongLinkTestSupport
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
    let program = try LocalProgram(
      root.appending(path: "Scripts/python.sh").path, ["-B", peerFile("services.py")])
    defer { program.stop() }
    try await body(Int(program.firstLine()) ?? 0)
  }

  /// Runs a body with a server that has a configuration, made of a folder and a free port.
  private static func with(
    _ program: String?, _ configuration: (String, Int) throws -> String,
    arguments: (String) -> [String], body: (Int, String) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory
      .appending(path: "longlink-program-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let port = Int(try RecordingRelay.freePort())
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

  /// Runs a body with an nginx whose server has these directives besides the port: after `listen`,
  /// and on lines of their own.
  static func withNginx(
    listen: String = "", _ directives: String, body: (Int, String) async throws -> Void
  ) async throws {
    try await with(nginx) { folder, port in
      """
      daemon off; master_process off; pid \(folder)/pid; error_log \(folder)/errors;
      events {}
      http {
        access_log off; client_max_body_size 100m;
        client_body_temp_path \(folder)/body; proxy_temp_path \(folder)/proxy;
        fastcgi_temp_path \(folder)/f; uwsgi_temp_path \(folder)/u; scgi_temp_path \(folder)/s;
        server {
          listen 127.0.0.1:\(port) \(listen);
          root \(folder);
          \(directives)
        }
      }
      """
    } arguments: { folder in
      ["-p", folder, "-c", folder + "/server.conf", "-e", folder + "/errors"]
    } body: { port, folder in
      try await body(port, folder)
    }
  }

  /// Runs a body with an Apache that has these modules and directives besides the port, made of its
  /// folder.
  static func withApache(
    _ modules: [String], _ directives: (String) throws -> String,
    body: (Int, String) async throws -> Void
  ) async throws {
    try await with(apache) { folder, port in
      let files = apacheModules ?? ""
      let loaded = ["mpm_event", "authn_core", "authz_core"] + modules
      return loaded.map { "LoadModule \($0)_module \(files)/mod_\($0).so\n" }.joined()
        + """
        ServerRoot "\(folder)"
        ServerName localhost
        Listen 127.0.0.1:\(port)
        PidFile "\(folder)/pid"
        Mutex posixsem
        ErrorLog "\(folder)/errors"
        DocumentRoot "\(folder)"
        \(try directives(folder))

        """
    } arguments: { folder in
      ["-X", "-f", folder + "/server.conf"]
    } body: { port, folder in
      try await body(port, folder)
    }
  }

  /// A file beside the peers in Python, such as a certificate.
  static func peerFile(_ name: String) -> String {
    URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Peers/\(name)").path
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
    // It may have inherited a mask that holds back other signals, and keeps nothing of worth.
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
  }
}
#endif
