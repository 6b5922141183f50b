// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import LongLinkHTTPServer
import LongLinkServer
import LongLinkUploadsServer

/// Serves the feed, and receives photographs; over the long link, and over HTTP.
@main
struct FeedServer: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "FeedServer", abstract: "Serves a feed, and receives photographs.")

  @Option(help: "The port of the long link; 0 for a free one.")
  var port: UInt16 = 9020

  @Option(help: "The port of HTTP; 0 for a free one.")
  var http = 9021

  @Option(help: "The directory that keeps the photographs.")
  var photographs = "photographs"

  func run() async throws {
    let server = try LongLinkServer(listen: .host("127.0.0.1", port: port))
    FeedWriter.register(with: server)
    try server.routeUploads(in: photographs)
    var configuration = HTTPGatewayConfiguration()
    configuration.port = http
    let gateway = try LongLinkHTTPGateway(for: server, configuration)
    try await server.run(until: .sigterm, .sigint, within: .seconds(5)) {
      let address = try await gateway.start()
      // Unbuffered, because the parent process may wait for these lines.
      say("listening on \(server.addresses[0])")
      say("http on \(address)")
    }
    await gateway.shutDown(within: .seconds(1))
  }

  private func say(_ line: String) {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
  }
}
