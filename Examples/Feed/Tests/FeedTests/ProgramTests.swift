// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// The programs, over the long link, and over HTTP through nginx with the long port blocked.
@Suite(.serialized) struct ProgramTests {
  enum Path: CaseIterable {
    case longLink
    case http
  }

  /// A server with a directory of its own, and nginx in front of it.
  private final class Site {
    let folder: URL
    private let server = Process()
    private let proxy = Process()
    private(set) var options: [String] = []

    init(_ path: Path) throws {
      folder = FileManager.default.temporaryDirectory.appending(path: "feed-\(UUID())")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let output = Pipe()
      server.executableURL = program("FeedServer")
      server.arguments = [
        "--port", "0", "--http", "0", "--photographs", folder.appending(path: "photographs").path,
      ]
      server.standardOutput = output
      try server.run()
      let link = try port(in: line(of: output))
      let http = try port(in: line(of: output))
      switch path {
      case .longLink:
        options = ["--port", "\(link)"]
      case .http:
        let front = try startProxy(to: http)
        // Nobody listens at port 9 of the loopback.
        options = ["--port", "9", "--http", "http://127.0.0.1:\(front)/longlink/v1"]
      }
    }

    deinit {
      // SIGTERM: nginx then ends its workers, too.
      for process in [proxy, server] where process.isRunning {
        process.terminate()
        process.waitUntilExit()
      }
      try? FileManager.default.removeItem(at: folder)
    }

    /// Starts nginx with the example's own configuration, on a free port.
    private func startProxy(to port: UInt16) throws -> UInt16 {
      let front = try freePort()
      let example = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "nginx.conf")
      let text = try String(contentsOf: example, encoding: .utf8)
        .replacing("127.0.0.1:9021", with: "127.0.0.1:\(port)")
        .replacing("127.0.0.1:9022", with: "127.0.0.1:\(front)")
      let file = folder.appending(path: "nginx.conf")
      try text.write(to: file, atomically: true, encoding: .utf8)
      let path = ["/usr/sbin/nginx", "/usr/local/bin/nginx", "/opt/homebrew/bin/nginx"]
        .first { FileManager.default.isExecutableFile(atPath: $0) }
      proxy.executableURL = URL(filePath: try #require(path, "nginx is not installed"))
      proxy.arguments = ["-p", folder.path, "-c", file.path]
      try proxy.run()
      try waitForListener(at: front)
      return front
    }

    /// Runs `Feed`, and returns its lines and its exit code.
    func feed(_ arguments: [String]) throws -> (lines: [String], code: Int32) {
      let process = Process()
      let output = Pipe()
      process.executableURL = program("Feed")
      process.arguments = arguments + options
      process.standardOutput = output
      try process.run()
      let data = try output.fileHandleForReading.readToEnd() ?? Data()
      process.waitUntilExit()
      let text = String(decoding: data, as: UTF8.self)
      return (text.split(separator: "\n").map(String.init), process.terminationStatus)
    }
  }

  @Test(arguments: Path.allCases)
  func `nodes arrive, and an error behind the seventh`(_ path: Path) throws {
    let site = try Site(path)
    let whole = try site.feed(["watch", "--count", "10", "--interval", "1"])
    #expect(whole.code == 0 && whole.lines.count == 10)
    #expect(whole.lines.first == "1. Tide & wind" && whole.lines[1] == "2. Ships <arriving>")
    let broken = try site.feed(["watch", "--interval", "1", "--fails-after", "7"])
    #expect(broken.code == 1 && broken.lines.count == 8)
    #expect(broken.lines.last == "failed: The camera has lost its network (error 5)")
  }

  @Test(arguments: Path.allCases)
  func `a photograph is stored with its fields`(_ path: Path) throws {
    let site = try Site(path)
    let bytes = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) })
    let file = site.folder.appending(path: "harbour.jpg")
    try bytes.write(to: file)
    let sent = try site.feed(["send", file.path, "--title", "Harbour", "--place", "Esbjerg"])
    #expect(sent.code == 0, "\(sent.lines)")
    let last = try #require(sent.lines.last)
    let id = try #require(last.split(separator: " ").dropFirst(2).first?.dropLast())
    let stored = site.folder.appending(path: "photographs/\(id)")
    #expect(try Data(contentsOf: stored.appending(path: "harbour.jpg")) == bytes)
    let fields = try JSONDecoder().decode(
      [String: String].self, from: Data(contentsOf: stored.appending(path: "fields.json")))
    #expect(fields == ["title": "Harbour", "place": "Esbjerg"])
  }
}

// MARK: - Processes and ports

/// A program of the package, which is built beside its tests.
private func program(_ name: String) -> URL {
  let tests = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? Bundle.main.bundlePath
  return URL(filePath: tests).deletingLastPathComponent().appending(path: name)
}

/// The next line of a pipe, byte by byte, so that the following one stays in it.
private func line(of pipe: Pipe) throws -> String {
  var line = Data()
  while let byte = try pipe.fileHandleForReading.read(upToCount: 1), byte != Data("\n".utf8) {
    line += byte
  }
  return String(decoding: line, as: UTF8.self)
}

private func port(in line: String) throws -> UInt16 {
  try #require(UInt16(line.split(separator: ":").last ?? ""), "\(line)")
}

/// An address of the loopback.
private func loopback(_ port: UInt16) -> sockaddr_in {
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  return address
}

private func freePort() throws -> UInt16 {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  defer { close(descriptor) }
  var address = loopback(0)
  var size = socklen_t(MemoryLayout<sockaddr_in>.size)
  let result = withUnsafeMutablePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      bind(descriptor, $0, size) == 0 ? getsockname(descriptor, $0, &size) : -1
    }
  }
  try #require(result == 0)
  return UInt16(bigEndian: address.sin_port)
}

/// Waits until something accepts connections at a port.
private func waitForListener(at port: UInt16) throws {
  for _ in 0..<10_000 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = loopback(port)
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    if result == 0 { return }
    usleep(1_000)
  }
  throw CocoaError(.featureUnsupported)
}
