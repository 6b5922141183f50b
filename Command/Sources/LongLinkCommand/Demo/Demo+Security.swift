// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import LongLink
import LongLinkCertificates
import LongLinkCommandSupport
import LongLinkTLS
import Synchronization

/// The steps with TLS, against a server of their own.
extension Demo {
  /// A folder with the files of a trial.
  private final class Trial {
    private let place: DemoFolder
    let files: CertificateFiles

    init() throws {
      place = try DemoFolder()
      files = Trial.made()
      try files.write(to: folder)
    }

    var folder: String { place.path }

    private static var validity: Range<Int64> {
      let now = Int64(Date().timeIntervalSince1970)
      return now - 3_600..<now + 30 * 86_400
    }

    static func made() -> CertificateFiles {
      CertificateFiles(serial: .random(in: 1...1 << 62), validity: validity)
    }

    /// Replaces the server's certificate and key, as an operator does.
    func replaceServer() throws {
      let pair = CertificateKit.make(
        CertificateRequest(
          name: "the next certificate", names: ["IP:127.0.0.1"], purpose: .server,
          serial: .random(in: 1...1 << 62), validity: Trial.validity), issuer: files.authority)
      for (name, bytes) in [("server-key.pem", pair.key), ("server.pem", pair.certificate)] {
        try FileProblem.naming("\(folder)/\(name)") {
          try Data(bytes).write(to: URL(fileURLWithPath: "\(folder)/\(name)"), options: .atomic)
        }
      }
    }
  }

  /// Requests beside a certificate that is replaced.
  private final class Load: Sendable {
    let answered = Mutex(0)
    let isOver = Mutex(false)
  }

  func showSecurity() async throws {
    try timeline.chapter("TLS: a server with a certificate, and clients that verify it")
    let trial = try Trial()
    let port = try await startServer(
      port: 0,
      [
        "--tls-certificate", "\(trial.folder)/server.pem", "--tls-key",
        "\(trial.folder)/server-key.pem", "--token", "ann=a secret",
      ])
    let client = try secured(port, trusting: trial.files)
    do {
      try await showHandshake(client)
      try await showWrongCertificate(port)
      try await showWrongToken(port, trial.files)
      try await showReplacement(client, port, trial)
    } catch {
      await client.close()
      throw error
    }
    await client.close()
    try process.send(SIGTERM)
  }

  private func secured(
    _ port: UInt16, trusting files: CertificateFiles, token: String = "a secret"
  ) throws -> LongLinkClient {
    var configuration = ClientConfiguration(servers: [.host("127.0.0.1", port: port)])
    configuration.logger.logLevel = .critical
    configuration.reconnect.afterRefused = .milliseconds(50)
    configuration.identity.credential = { Array(token.utf8) }
    var security = TLSClientConfiguration()
    security.roots = .only(.bytes(files.authority.certificate))
    configuration.security = try .tls(security)
    return try LongLinkClient(configuration)
  }

  private func showHandshake(_ client: LongLinkClient) async throws {
    let echo = try await client.request(DemoRoutes.echo, Array("in private".utf8))
    let security = await client.security()
    try timeline.check(
      echo == Array("in private".utf8) && security?.version == "TLSv1.3",
      "the server is who it should be, and all is encrypted", otherwise: "\(security as Any)")
    try timeline.tell("\(security?.version ?? ""), \(security?.cipher ?? "")")
  }

  private func showWrongCertificate(_ port: UInt16) async throws {
    let other = try secured(port, trusting: Trial.made())
    let error = try await failure(of: other, "a server that nobody vouches for")
    try timeline.check(
      error, is: .securityFailed, .notSent, "a client that trusts another authority sends nothing")
    try timeline.check(
      error.securityFailure?.code == .unknownAuthority,
      "it knows why: unknownAuthority, of \(error.securityFailure?.certificate?.subject ?? "")",
      otherwise: "\(error)")
    await other.close()
  }

  private func showWrongToken(_ port: UInt16, _ files: CertificateFiles) async throws {
    let stranger = try secured(port, trusting: files, token: "a guess")
    let error = try await failure(of: stranger, "a wrong token")
    try timeline.check(error, is: .notAccepted, .notSent, "a wrong token is not accepted")
    await stranger.close()
  }

  private func failure(of client: LongLinkClient, _ what: String) async throws -> LongLinkError {
    do throws(LongLinkError) {
      try await client.connect()
    } catch {
      return error
    }
    throw DemoFailure("\(what) was accepted")
  }

  private func showReplacement(
    _ client: LongLinkClient, _ port: UInt16, _ trial: Trial
  ) async throws {
    try timeline.chapter("The certificate is replaced while requests are under way")
    let before = await client.security()?.peerCertificate
    let load = Load()
    let outcome = try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<8 {
        group.addTask {
          while !load.isOver.withLock({ $0 }) {
            let body = [UInt8(number)]
            guard try await client.request(DemoRoutes.echo, body) == body else {
              throw DemoFailure("a request was answered wrongly")
            }
            load.answered.withLock { $0 += 1 }
          }
        }
      }
      // Whatever happens, the requests end.
      defer { load.isOver.withLock { $0 = true } }
      try trial.replaceServer()
      try process.send(SIGHUP)
      let found = try await awaitCertificate(port, trial.files, otherThan: before)
      load.isOver.withLock { $0 = true }
      try await group.waitForAll()
      return found
    }
    try timeline.check(
      outcome.after.names == [.address("127.0.0.1")],
      "new connections get the new certificate; \(outcome.connects) connects, none failed",
      otherwise: "\(outcome)")
    let count = load.answered.withLock { $0 }
    let isOld = await client.security()?.peerCertificate == before
    let counters = await client.counters()
    try timeline.check(
      count > 0 && isOld && counters.connects == 1 && counters.requests.lost == 0,
      "the old connection goes on: all \(count) requests beside it were answered",
      otherwise: "\(counters)")
  }

  /// Makes connections until one gets another certificate.
  private func awaitCertificate(
    _ port: UInt16, _ files: CertificateFiles, otherThan before: PeerCertificate?
  ) async throws -> (after: PeerCertificate, connects: Int) {
    let limit = ContinuousClock.now + .seconds(10)
    var connects = 0
    while ContinuousClock.now < limit {
      let other = try secured(port, trusting: files)
      try await other.connect()
      connects += 1
      let certificate = await other.security()?.peerCertificate
      await other.close()
      if let certificate, certificate != before { return (certificate, connects) }
      try await Task.sleep(for: .milliseconds(10))
    }
    throw DemoFailure("the server still shows the old certificate")
  }
}
