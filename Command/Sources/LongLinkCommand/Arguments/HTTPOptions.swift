// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLink
import LongLinkCommandSupport

#if HTTP
import LongLinkHTTP
#endif

/// The gateway that a command goes through instead of a connection.
struct HTTPOptions: ParsableArguments {
  #if HTTP
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Go over HTTP alone, to the gateway at this URL: http://127.0.0.1:8080/longlink/v1.",
      valueName: "url"))
  private var http: String?
  #else
  private var http: String? { nil }
  #endif

  /// Whether the command goes over HTTP.
  var isGiven: Bool { http != nil }

  /// Lets a client go over HTTP alone, if that is wanted.
  func apply(to configuration: inout ClientConfiguration) throws {
    #if HTTP
    guard let http else { return }
    do throws(LongLinkError) {
      configuration.ways = [try .http(url: http)]
    } catch {
      throw Output.usageError("\(error)")
    }
    #endif
  }
}
