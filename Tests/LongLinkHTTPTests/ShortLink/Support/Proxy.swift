// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
import LongLinkTestSupport
import NIOCore
import Testing

/// A proxy of a test's own, on a port of this machine, in a temporary folder.
final class Proxy: Sendable {
  let port: Int
  private let process: Process
  private let folder: URL
  private let hasEnded: Watched<Bool>

  var url: String { "http://127.0.0.1:\(port)/longlink/v1" }

  private init(port: Int, process: Process, folder: URL, hasEnded: Watched<Bool>) {
    self.hasEnded = hasEnded
    self.port = port
    self.process = process
    self.folder = folder
  }

  /// Runs a body with a program that is given a configuration in a file, both made for a folder.
  static func run(
    _ program: String?, _ arguments: (String) -> [String],
    _ configuration: (_ folder: String, _ port: Int) -> String,
    _ body: (Proxy) async throws -> Void
  ) async throws {
    let proxy = try await start(try #require(program), arguments, configuration)
    do {
      try await body(proxy)
      await proxy.stop()
    } catch {
      await proxy.stop()
      throw error
    }
  }

  private static func start(
    _ program: String, _ arguments: (String) -> [String],
    _ configuration: (_ folder: String, _ port: Int) -> String
  ) async throws -> Proxy {
    let folder = FileManager.default.temporaryDirectory
      .appending(component: "longlink-proxy-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    // A port that was free a moment ago.
    let probe = try await RawPeer.listen { _ in }
    let port = probe.localAddress?.port ?? 0
    try await probe.close()
    try configuration(folder.path, port)
      .write(to: folder.appending(component: "proxy.conf"), atomically: true, encoding: .utf8)
    let log = folder.appending(component: "error.log")
    try Data().write(to: log)
    let process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments = arguments(folder.path)
    process.environment = ["HOME": folder.path, "PATH": "/usr/bin:/bin"]
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = try FileHandle(forWritingTo: log)
    let hasEnded = Watched(false)
    process.terminationHandler = { _ in hasEnded.change { $0 = true } }
    try process.run()
    let proxy = Proxy(port: port, process: process, folder: folder, hasEnded: hasEnded)
    while true {
      if let peer = try? await RawPeer.connect(to: port) {
        peer.close()
        return proxy
      }
      guard process.isRunning else {
        let text = try? String(contentsOf: log, encoding: .utf8)
        await proxy.stop()
        throw ProxyFailure(description: "\(program) did not start: \(text ?? "no log")")
      }
      await Task.yield()
    }
  }

  private func stop() async {
    // It may have inherited a mask that holds back other signals, and keeps nothing of worth.
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    await hasEnded.until { $0 }
    try? FileManager.default.removeItem(at: folder)
  }
}

struct ProxyFailure: Error, CustomStringConvertible {
  let description: String
}

private func executable(_ paths: String...) -> String? {
  paths.first { FileManager.default.isExecutableFile(atPath: $0) }
}

enum Nginx {
  private static var program: String? {
    executable("/usr/sbin/nginx", "/usr/bin/nginx", "/opt/homebrew/bin/nginx")
  }

  /// Why nginx cannot be used; nil if it can.
  static var problem: String? { program == nil ? "there is no nginx" : nil }

  /// Runs a body with an nginx in front of a port, whose location holds these directives too.
  static func run(
    to upstream: Int, _ directives: String = "", _ body: (Proxy) async throws -> Void
  ) async throws {
    try await Proxy.run(
      program, { ["-p", $0, "-c", "\($0)/proxy.conf", "-e", "\($0)/error.log"] },
      { configuration($0, $1, upstream, directives) }, body)
  }

  private static func configuration(
    _ folder: String, _ port: Int, _ upstream: Int, _ directives: String
  ) -> String {
    """
    daemon off;
    master_process off;
    worker_processes 1;
    pid \(folder)/nginx.pid;
    error_log \(folder)/error.log;
    events { worker_connections 256; }
    http {
      access_log off;
      client_body_temp_path \(folder)/body;
      proxy_temp_path \(folder)/proxy;
      fastcgi_temp_path \(folder)/fastcgi;
      uwsgi_temp_path \(folder)/uwsgi;
      scgi_temp_path \(folder)/scgi;
      server {
        listen 127.0.0.1:\(port);
        location /longlink/v1 {
          proxy_pass http://127.0.0.1:\(upstream);
          proxy_http_version 1.1;
          proxy_set_header Connection "";
          proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
          \(directives)
        }
      }
    }
    """
  }
}

/// Caddy, whose reverse proxy is that of Go's standard library.
enum Caddy {
  private static var program: String? { executable("/usr/bin/caddy", "/opt/homebrew/bin/caddy") }

  /// Why Caddy cannot be used; nil if it can.
  static var problem: String? { program == nil ? "there is no caddy" : nil }

  static func run(to upstream: Int, _ body: (Proxy) async throws -> Void) async throws {
    try await Proxy.run(
      program, { ["run", "--config", "\($0)/proxy.conf", "--adapter", "caddyfile"] },
      { _, port in
        """
        {
          admin off
          auto_https off
        }
        http://127.0.0.1:\(port) {
          bind 127.0.0.1
          reverse_proxy 127.0.0.1:\(upstream)
        }
        """
      }, body)
  }
}
#endif
