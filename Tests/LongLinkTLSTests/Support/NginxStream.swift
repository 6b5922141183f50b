// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkTestSupport

/// An nginx that passes connections on, over TLS on one side.
final class NginxStream: Sendable {
  let port: UInt16
  private let program: Program
  private let folder: Folder

  /// Debian's module; elsewhere nginx may have it built in.
  private static let module = "/usr/lib/nginx/modules/ngx_stream_module.so"

  /// Why it cannot run here; nil if it can.
  static let problem: String? = {
    if let problem = Program.problem("nginx") { return problem }
    guard let folder = try? Folder(), let file = try? write(in: folder, 1, 1, "") else {
      return "there is no folder for nginx"
    }
    let test = Process()
    test.executableURL = URL(filePath: "/usr/bin/env")
    test.arguments = ["nginx", "-t", "-q", "-p", folder.path, "-c", file, "-e", "stderr"]
    test.standardError = FileHandle.nullDevice
    test.standardOutput = FileHandle.nullDevice
    guard (try? test.run()) != nil else { return "nginx does not run" }
    test.waitUntilExit()
    return test.terminationStatus == 0 ? nil : "nginx has no module for streams"
  }()

  /// Starts one in front of a port, with directives of its server. Certificates that these name are
  /// in the folder.
  init(to upstream: UInt16, in folder: Folder, _ directives: String) throws {
    port = try RecordingRelay.freePort()
    self.folder = folder
    let file = try NginxStream.write(in: folder, port, upstream, directives)
    program = try Program("nginx", "-p", folder.path, "-c", file, "-e", "\(folder.path)/error.log")
  }

  private static func write(
    in folder: Folder, _ port: UInt16, _ upstream: UInt16, _ directives: String
  ) throws -> String {
    let hasModule = FileManager.default.fileExists(atPath: module)
    let text = """
      \(hasModule ? "load_module \(module);" : "")
      daemon off;
      master_process off;
      pid \(folder.path)/nginx.pid;
      error_log \(folder.path)/error.log;
      events { worker_connections 256; }
      stream {
        server {
          listen 127.0.0.1:\(port)\(directives.contains("ssl_certificate ") ? " ssl" : "");
          proxy_pass 127.0.0.1:\(upstream);
          \(directives)
        }
      }
      """
    return try folder.write("nginx.conf", Array(text.utf8))
  }
}
