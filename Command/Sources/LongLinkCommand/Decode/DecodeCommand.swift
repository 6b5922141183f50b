// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLinkCommandSupport
import LongLinkCore
import LongLinkScenarios

/// The sender of a stream.
enum Sender: String, ExpressibleByArgument, CaseIterable {
  case client
  case server

  var role: Role { self == .client ? .client : .server }
}

/// `longlink decode`.
struct DecodeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "decode",
    abstract: "Prints the frames in captured bytes.",
    discussion: """
      The input is the bytes that one side sent, or a dump of them: plain hexadecimal digits, or \
      the output of xxd or hexdump -C. In packets printed by tcpdump -x or tshark -x, each \
      direction of each connection is decoded separately. Pass a capture file through tshark:

        tshark -r FILE -Y 'tcp.port==9000 && tcp.len>0' -T fields \
      \(PacketDump.columns.map { "-e \($0)" }.joined(separator: " ")) | longlink decode

      A recording of LongLink, a pcapng file too, is read as it is: each direction of each \
      connection is decoded. Bodies that it has left out are no damage. `longlink replay` shows \
      the rest of it.

      Each frame and each error has a line that begins with its offset. With --json there is one \
      object per line: stream, from, offset, length, kind, type, serial, code, refused, fragment, \
      more, metadata and body (base64), error.

      Exit codes: 0 every byte belongs to a valid frame, 6 something is damaged or cut off, 64 \
      wrong arguments, layout or input.
      """)

  @Argument(help: ArgumentHelp("The input; '-' is standard input.", valueName: "file"))
  var file = "-"

  @OptionGroup var layout: LayoutOptions

  @Option(
    help: """
      Who sent the bytes, client or server (default: the one for which more of them decode).
      """)
  var from: Sender?

  @Flag(help: "Print one JSON object for each frame.")
  var json = false

  @Flag(name: .shortAndLong, help: "Print every field, and whole bodies.")
  var verbose = false

  func run() throws {
    let dialect = try layout.dialect()
    let input = try InputFile(file).read()
    if RecordingFile.isPcapng(input), let recording = try? RecordingFile(input) {
      return try decode(recording)
    }
    let streams = try streams(of: input)
    var isDamaged = false
    for stream in streams {
      let (sender, items) = try FrameDecoder.items(
        in: stream.bytes, of: dialect, from: from?.role)
      let printer = DecodePrinter(
        stream: stream.label, sender: sender, asJSON: json, isVerbose: verbose)
      try printer.begin()
      for item in items { try printer.print(item) }
      for gap in stream.gaps { try printer.gap(at: gap) }
      if !stream.gaps.isEmpty || items.contains(where: \.isDamage) { isDamaged = true }
    }
    if isDamaged { throw ExitCode(ExitStatus.damaged) }
  }

  private func decode(_ recording: RecordingFile) throws {
    guard layout.file == nil, from == nil else {
      throw Output.usageError(
        "--layout and --from are not for recordings: \(source) says who sent which native frames")
    }
    var isDamaged = recording.damage != nil
    for stream in RecordedDirection.all(in: recording) {
      let printer = DecodePrinter(
        stream: stream.label, sender: stream.sender, asJSON: json, isVerbose: verbose)
      try printer.begin()
      for item in stream.items { try printer.print(item) }
      if stream.items.contains(where: \.isDamage) { isDamaged = true }
    }
    if let damage = recording.damage { Output.error("\(source): \(damage)") }
    if isDamaged { throw ExitCode(ExitStatus.damaged) }
  }

  private var source: String { InputFile(file).name }

  private func streams(of input: [UInt8]) throws -> [HexDump.Stream] {
    guard !input.isEmpty else {
      throw Output.usageError("\(source) is empty: there is nothing to decode")
    }
    if let format = CaptureFormat(input) {
      throw Output.usageError(format.advice(file: file, layout: layout.file))
    }
    do {
      return try HexDump.streams(input)
    } catch let error as HexDump.Failure {
      throw Output.usageError("\(source): \(error)")
    }
  }
}
