// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLink
import LongLinkCommandSupport

/// What makes a server recognise the client of an earlier call.
struct IdentityOptions: ParsableArguments {
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      """
      Be the client whose identity is in this file, a secret, which is made if there is none. To \
      the server, calls with one file are one client; of two at the same time, the later one gets \
      its pushes.
      """, valueName: "file"))
  private var identity: String?

  var isGiven: Bool { identity != nil }

  /// Sets the identity of a client, if one is given.
  func apply(to configuration: inout ClientConfiguration, overHTTP: Bool) throws {
    guard let identity else { return }
    guard !overHTTP else {
      throw Output.usageError("Over HTTP a client has no identity: leave out --identity.")
    }
    do throws(LongLinkError) {
      configuration.identity.client = try .file(identity)
    } catch {
      throw Output.usageError("\(error)")
    }
  }
}
