// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FeedMessages
import LongLink
import LongLinkHTTP
import LongLinkUploads

/// The feed in the terminal.
@main
struct Feed: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Feed", abstract: "Shows a feed, and uploads photographs.",
    subcommands: [Watch.self, Send.self])
}

/// The options that name the server.
struct ServerOptions: ParsableArguments {
  @Option(help: "The name or address of the server.")
  var host = "127.0.0.1"

  @Option(help: "The port of the long link.")
  var port: UInt16 = 9020

  @Option(help: "The URL for HTTP, which is used where the long link gets no connection.")
  var http: String?

  @Option(help: "How long the long link is tried before HTTP is used, in seconds.")
  var patience = 5.0

  func client() throws -> LongLinkClient {
    var configuration = ClientConfiguration(servers: [.host(host, port: port)])
    configuration.logger.logLevel = .critical
    configuration.timeouts.connect = .seconds(patience)
    if let http { configuration.ways = [.longLink, try .http(url: http)] }
    return try LongLinkClient(configuration)
  }
}

/// `Feed watch`.
struct Watch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Shows nodes as they arrive.")

  @Option(help: "The number of nodes.")
  var count = 10

  @Option(help: "The time between two nodes, in milliseconds.")
  var interval = 1_000

  @Option(help: "The number of nodes after which the feed fails.")
  var failsAfter: Int?

  @OptionGroup var server: ServerOptions

  func run() async throws {
    let client = try server.client()
    let screen = Screen()
    let query = Query(count: count, interval: interval, failsAfter: failsAfter)
    do {
      try await FeedReader(client: client).read(query) { screen.show($0, of: count) }
      screen.finish()
    } catch {
      screen.line("failed: \(error)")
      await client.close()
      throw ExitCode.failure
    }
    await client.close()
  }
}

/// `Feed send`.
struct Send: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Uploads a photograph.")

  @Argument(help: "The file.")
  var photograph: String

  @Option(help: "What it shows.")
  var title = "untitled"

  @Option(help: "Where it was taken.")
  var place = "unknown"

  @OptionGroup var server: ServerOptions

  func run() async throws {
    let client = try server.client()
    let screen = Screen()
    let body: [UploadPart] = [
      .field("title", title), .field("place", place), .file("photograph", at: photograph),
    ]
    let upload = Uploader(client).start(body)
    for await progress in upload.progress() { screen.show(progress) }
    do {
      let receipt = try await upload.receipt
      screen.line("stored as \(receipt.id), \(receipt.size) bytes")
    } catch {
      screen.line("failed: \(error)")
      await client.close()
      throw ExitCode.failure
    }
    await client.close()
  }
}
