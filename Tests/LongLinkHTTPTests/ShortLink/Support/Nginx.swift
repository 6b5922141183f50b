// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Foundation
import NIOCore

/// An nginx of a test's own, on a port of this machine, in a temporary folder.
final class Nginx: Sendable {
  let port: Int
  private let process: Process
  private let folder: URL
  private let hasEnded: Watched<Bool>

  private static let programs = ["/usr/sbin/nginx", "/usr/bin/nginx", "/opt/homebrew/bin/nginx"]
  private static var program: String? {
    programs.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Why nginx cannot be used; nil if it can.
  static var problem: String? { program == nil ? "there is no nginx" : nil }

  var url: String { "http://127.0.0.1:\(port)/longlink/v1" }

  private init(port: Int, process: Process, folder: URL, hasEnded: Watched<Bool>) {
    self.hasEnded = hasEnded
    self.port = port
    self.process = process
    self.folder = folder
  }

  /// Runs a body with an nginx in front of a port, whose location holds these directives too.
  static func run(
    to upstream: Int, _ directives: String = "", _ body: (Nginx) async throws -> Void
  ) async throws {
    let nginx = try await start(to: upstream, directives)
    do {
      try await body(nginx)
      await nginx.stop()
    } catch {
      await nginx.stop()
      throw error
    }
  }

  private static func start(to upstream: Int, _ directives: String) async throws -> Nginx {
    let folder = FileManager.default.temporaryDirectory
      .appending(component: "longlink-nginx-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    // A port that was free a moment ago.
    let probe = try await RawPeer.listen { _ in }
    let port = probe.localAddress?.port ?? 0
    try await probe.close()
    let file = folder.appending(component: "nginx.conf")
    try configuration(folder.path, port, upstream, directives)
      .write(to: file, atomically: true, encoding: .utf8)
    let process = Process()
    process.executableURL = URL(filePath: program ?? "/usr/sbin/nginx")
    process.arguments = ["-p", folder.path, "-c", file.path, "-e", "\(folder.path)/error.log"]
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    let hasEnded = Watched(false)
    process.terminationHandler = { _ in hasEnded.change { $0 = true } }
    try process.run()
    let nginx = Nginx(port: port, process: process, folder: folder, hasEnded: hasEnded)
    while true {
      if let peer = try? await RawPeer.connect(to: port) {
        peer.close()
        return nginx
      }
      guard process.isRunning else {
        let file = folder.appending(component: "error.log")
        let log = try? String(contentsOf: file, encoding: .utf8)
        await nginx.stop()
        throw NginxFailure(description: "nginx did not start: \(log ?? "no log")")
      }
      await Task.yield()
    }
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

  private func stop() async {
    // It may have inherited a mask that holds back other signals, and keeps nothing of worth.
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    await hasEnded.until { $0 }
    try? FileManager.default.removeItem(at: folder)
  }
}

struct NginxFailure: Error, CustomStringConvertible {
  let description: String
}
#endif
