// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Logging
import LongLink
import LongLinkCommandSupport

/// Which server a client speaks to, and how much it says about it.
struct ServerOptions: ParsableArguments {
  @OptionGroup private var place: EndpointOptions

  @Flag(name: .shortAndLong, help: "Log to standard error.")
  var verbose = false

  var endpoint: Endpoint { place.endpoint }

  /// A client of that server, which fails rather than waits where there is no connection.
  func makeClient(_ change: (inout ClientConfiguration) -> Void) throws -> LongLinkClient {
    var configuration = ClientConfiguration(servers: [endpoint])
    configuration.offline = .failUnlessConnecting
    configuration.name = "longlink"
    configuration.logger.logLevel = verbose ? .debug : .error
    change(&configuration)
    do {
      return try LongLinkClient(configuration)
    } catch {
      throw Output.usageError("\(error)")
    }
  }
}
