// SPDX-License-Identifier: Apache-2.0

import Testing

/// What could make a repeated simulation differ.
extension TidyTests {
  /// The lines that go through the keys or values of a dictionary without sorting them. That order
  /// differs from run to run, so nothing that is sent, called or drawn there may depend on it.
  private static let unsorted = [
    // Sets a flag in each, counts, or asks whether there is one.
    "LongLinkCalls/Cache/CallCore+Invalidating.swift": 1,
    "LongLinkCore/Framing/DialectState.swift": 1,
    "LongLinkCore/Connection/InboundTable.swift": 4,
    "LongLinkDriver/Pushes/PushQueue.swift": 1,
    "LongLinkServer/Identity/AuthenticationQueue.swift": 2,
    // Sorts afterwards.
    "LongLinkCore/Requests/RequestTable+Waiting.swift": 1,
    "LongLinkCore/Requests/RequestTable.swift": 1,
    "LongLinkOnce/OnceTable.swift": 1,
    // Frees buffers, weighs connections that are sorted then, and counts.
    "LongLinkServer/Lanes/ServerLane.swift": 3,
    // Makes a set.
    "LongLinkServer/Routes/ServerHooks.swift": 2,
    "LongLinkServer/Server/LongLinkServer+Running.swift": 1,
    // Looks for the smallest, clears each, or takes what has this name.
    "LongLinkUploadsServer/Store/UploadStore.swift": 2,
    "LongLinkTLS/Files/TLSFiles.swift": 1,
    "LongLinkTLS/Public/TLSServer.swift": 1,
    // Of the process, outside of simulations.
    "LongLinkTransport/Kernel/OutsideConnects.swift": 1,
  ]

  @Test func `what goes through dictionaries in no order is listed`() throws {
    let modules: Set = [
      "LongLink", "LongLinkCalls", "LongLinkCore", "LongLinkDriver", "LongLinkOnce",
      "LongLinkOnceStore", "LongLinkServer", "LongLinkTLS", "LongLinkTransport", "LongLinkUploads",
      "LongLinkUploadsServer",
    ]
    let loop = /\.(keys|values)( where| {|\.map|\.flatMap|\.compactMap|\.contains|,|$)/
    let copy = /[(}].*\.(keys|values)\)(,|\)| {|$)/
    var found: [String: Int] = [:]
    for source in try Self.sources("Sources")
    where modules.contains(source.target) && source.mentions([".keys", ".values"]) {
      let lines = source.code.filter {
        !$0.text.contains(".sorted") && ($0.text.contains(loop) || $0.text.contains(copy))
      }
      let path = source.path.split(separator: "/").drop { $0 != "Sources" }.dropFirst()
      if !lines.isEmpty { found[path.joined(separator: "/")] = lines.count }
    }
    #expect(found == Self.unsorted)
  }
}
