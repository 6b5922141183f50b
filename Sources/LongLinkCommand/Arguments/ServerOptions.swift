import ArgumentParser
import Logging
import LongLink

/// Which server a client speaks to, and how much it says about it.
struct ServerOptions: ParsableArguments {
  @Option(help: "The server's name or address (default: 127.0.0.1).", transform: Values.host)
  var host = "127.0.0.1"

  @Option(
    parsing: .unconditional, help: "The server's port, 1 to 65535 (default: 9000).",
    transform: Values.port)
  var port: UInt16 = 9000

  @Flag(name: .shortAndLong, help: "Log to standard error.")
  var verbose = false

  var endpoint: Endpoint { .host(host, port: port) }

  /// A client of that server, which fails rather than waits where there is no connection.
  func makeClient(_ change: (inout ClientConfiguration) -> Void) throws -> LongLinkClient {
    var configuration = ClientConfiguration(servers: [endpoint])
    configuration.offline = .fail
    configuration.name = "longlink"
    configuration.logger.logLevel = verbose ? .debug : .error
    change(&configuration)
    do {
      return try LongLinkClient(configuration)
    } catch {
      throw Output.usageError("\(error.operation): \(error.detail)")
    }
  }
}
