// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLinkCommandSupport
import LongLinkCore

/// `longlink dissector`.
struct DissectorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dissector",
    abstract: "Writes a dissector for Wireshark and tshark, in Lua.",
    discussion: """
      It goes to standard output. Without --layout it is for the native protocol:

        longlink dissector > longlink.lua
        tshark -X lua_script:longlink.lua -r capture.pcap -O longlink

      The port is also a preference of the dissector: tshark -o longlink.port:9001.
      """)

  @OptionGroup var layout: LayoutOptions

  @Option(
    parsing: .unconditional, help: "The port that the server listens on (default: 9000).",
    transform: Values.port)
  var port: UInt16 = 9000

  func run() throws {
    let dissector = try layout.dialect().map { Dissector($0, port: port) } ?? .native(port: port)
    try Output.write(Array(dissector.source.utf8))
  }
}
