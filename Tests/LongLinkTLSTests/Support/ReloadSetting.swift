// SPDX-License-Identifier: Apache-2.0

import LongLinkCertificates
import LongLinkServer
import LongLinkTLS
import LongLinkTesting
import Logging
import Synchronization

/// Takes the lines of a logger.
private struct Lines: LogHandler {
  let lines: Mutex<[String]>.Box
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.notice

  subscript(metadataKey key: String) -> Logger.MetadataValue? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    lines.value.withLock { $0.append("\(event.level) \(event.message)") }
  }
}

/// A server whose files are in a folder.
struct ReloadSetting: Sendable {
  let folder: Folder
  let server: TLSServer
  let parts: World.Parts
  let lines = Mutex<[String]>.Box([])

  init(
    _ first: CertificatePair = Certificates.server,
    _ change: (inout TLSServerConfiguration, Folder) throws -> Void = { _, _ in }
  ) throws {
    folder = try Folder()
    let files = try folder.write("server", first)
    var configuration = TLSServerConfiguration(chainFile: files.chain, keyFile: files.key)
    try change(&configuration, folder)
    server = try TLSServer(configuration)
    var parts = World.Parts(try .tls(.trusting { $0.resumes = false }), .tls(server))
    let lines = lines
    parts.server.logger = Logger(label: "test") { _ in Lines(lines: lines) }
    self.parts = parts
  }

  var logged: [String] {
    lines.value.withLock { $0 }.filter { $0.contains("ertificate") }
  }

  /// What replaces the first certificate.
  static let next = Certificates.make(.server, ["IP:10.0.0.1", "DNS:next"], serial: 77)
}

extension Mutex where Value == [String] {
  /// A mutex that values can share.
  final class Box: Sendable {
    let value: Mutex<[String]>

    init(_ value: [String]) {
      self.value = Mutex(value)
    }
  }
}
