// SPDX-License-Identifier: Apache-2.0

import LongLinkCertificates
import LongLinkServer
import LongLinkTLS
import LongLinkTestSupport
import LongLinkTesting
import Logging

/// A server whose files are in a folder.
struct ReloadSetting: Sendable {
  let folder: Folder
  let server: TLSServer
  let parts: World.Parts
  let log = LogLines()

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
    parts.server.logger = log.logger(from: .notice)
    self.parts = parts
  }

  var logged: [String] {
    log.all.map { "\($0.level) \($0.message)" }.filter { $0.contains("ertificate") }
  }

  /// What replaces the first certificate.
  static let next = Certificates.make(.server, ["IP:10.0.0.1", "DNS:next"], serial: 77)
}
