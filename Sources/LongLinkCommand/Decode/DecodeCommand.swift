import ArgumentParser
import Foundation
import LongLinkCore

/// Who has sent a stream.
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
      The input is bytes as they were sent in one direction, or a dump of them: plain hexadecimal \
      digits, or what xxd, hexdump -C or tcpdump -x print (of that, every direction of every \
      connection, each by itself). Each frame has a line that begins with its offset, and so has \
      what is wrong. With --json there is one object a line: stream, offset, length, kind, type, \
      serial, code, refused, body (base64), error.

      Exit codes: 0 every byte belongs to a frame that is right, 6 something is damaged or cut \
      off, 64 wrong arguments, layout or dump.
      """)

  @Argument(help: ArgumentHelp("Where the bytes are; '-' is standard input.", valueName: "file"))
  var file = "-"

  @OptionGroup var layout: LayoutOptions

  @Option(
    help: """
      Who sent the bytes, client or server (default: the one as whose they make more sense).
      """)
  var from: Sender?

  @Flag(help: "Print one JSON object for each frame.")
  var json = false

  @Flag(name: .shortAndLong, help: "Print every field, and bodies whole.")
  var verbose = false

  func run() throws {
    let dialect = try layout.dialect()
    let streams: [HexDump.Stream]
    do {
      streams = try HexDump.streams(read())
    } catch let error as HexDump.Failure {
      throw Output.usageError(error.description)
    }
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

  private func read() throws -> [UInt8] {
    do {
      if file == "-" { return try [UInt8](FileHandle.standardInput.readToEnd() ?? Data()) }
      return try [UInt8](Data(contentsOf: URL(fileURLWithPath: file)))
    } catch {
      let source = file == "-" ? "standard input" : "'\(file)'"
      throw Output.usageError("cannot read \(source): \(error.localizedDescription)")
    }
  }
}
