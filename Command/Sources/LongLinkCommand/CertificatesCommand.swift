// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import LongLinkCertificates
import LongLinkCommandSupport
import LongLinkTransport

/// `longlink certificates`.
struct CertificatesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "certificates",
    abstract: "Makes certificates for a trial of TLS: an authority, a server's, a client's.",
    discussion: """
      Writes ca.pem, ca-key.pem, server.pem, server-key.pem, client.pem and client-key.pem into \
      DIRECTORY, which is made if there is none; only you can read them. The server's certificate \
      is for localhost, 127.0.0.1 and ::1, and for each --name.

      Files of an earlier call are replaced. The keys are not protected by a password: use these \
      certificates for trials and tests, and nowhere else.
      """)

  @Argument(help: "Where the files go.")
  var directory: String

  @Option(help: ArgumentHelp("A further name or address of the server.", valueName: "name"))
  var name: [String] = []

  @Option(
    help: ArgumentHelp("How many days they are valid (default: 30).", valueName: "days"),
    transform: Values.count)
  var days = 30

  func validate() throws {
    if days > 36_500 { throw ValidationError("36500 days are the most.") }
    for name in name where !name.isAddress && !name.isNameOfHost {
      throw ValidationError("'\(name)' is not a name or address.")
    }
  }

  func run() throws {
    do {
      try FileProblem.naming(directory) {
        try FileManager.default.createDirectory(
          atPath: directory, withIntermediateDirectories: true,
          attributes: [.posixPermissions: 0o700])
      }
      let now = Int64(Date().timeIntervalSince1970)
      let further = name.map { $0.isAddress ? "IP:\($0)" : "DNS:\($0)" }
      let files = CertificateFiles(
        serverNames: ["DNS:localhost", "IP:127.0.0.1", "IP:::1"] + further,
        serial: .random(in: 1...UInt64(Int64.max)),
        // Clocks differ.
        validity: now - 3_600..<now + Int64(days) * 86_400, keyKind: .p256)
      try files.write(to: directory)
    } catch {
      Output.error("\(error)")
      throw ExitCode(ExitStatus.failure)
    }
    for file in ["ca", "server", "client"] {
      try Output.line("\(directory)/\(file).pem")
    }
  }
}

extension String {
  fileprivate var isAddress: Bool { SocketAddress(literal: self, port: 0) != nil }

  /// Whether it may be the name of a host, also with a wildcard: labels of 1 to 63 characters. One
  /// of digits and dots would be taken for an address, and a comma would begin another name.
  fileprivate var isNameOfHost: Bool {
    utf8.count <= 253 && !allSatisfy { $0.isNumber || $0 == "." }
      && split(separator: ".", omittingEmptySubsequences: false)
        .allSatisfy { (1...63).contains($0.utf8.count) }
      && allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-._*".contains($0)) }
  }
}
