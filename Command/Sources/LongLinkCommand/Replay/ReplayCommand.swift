// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLinkCommandSupport
import LongLinkCore
import LongLinkScenarios

/// `longlink replay`.
struct ReplayCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "replay",
    abstract: "Shows what a recording has, and repeats it.",
    discussion: """
      Prints a line for each frame and event: the seconds since the first one, the connection, the \
      direction, and what it was. Then the same bytes, instants and commands go into the core of a \
      connection, which has to decide the same. The last line says what came of that: 'replayed: N \
      steps', 'timeline only: WHY' if the recording does not reach back far enough, or 'differs at \
      SECONDS, connection N: WHAT'. `longlink decode` prints the frames in full.

      With --json there is one object per line: at (nanoseconds since 1970), connection, loop, \
      direction, kind (frame or event), name, and what else is known by its name; the last one has \
      result, and text, steps or connection.

      Exit codes: 0 replayed or timeline only, 1 it differs, 6 the file is damaged or cut off, 64 \
      wrong arguments, or no recording.
      """)

  @Argument(help: ArgumentHelp("The recording; '-' is standard input.", valueName: "file"))
  var file: String

  @Option(help: "Show and repeat only the connections with this number.")
  var connection: UInt32?

  @Flag(help: "Print one JSON object for each frame and event.")
  var json = false

  @Flag(
    help: """
      Draw the timeline as SVG on standard output, cut off after 1,000 events; the result goes to \
      standard error.
      """)
  var svg = false

  func run() throws {
    guard !json || !svg else { throw Output.usageError("--json and --svg exclude each other") }
    let input = InputFile(file)
    let bytes = try input.read()
    guard var recording = try? RecordingFile(bytes) else {
      throw Output.usageError("\(input.name) is no recording of LongLink")
    }
    if let connection, !recording.keep(connection) {
      throw Output.usageError("\(input.name) has no connection \(connection)")
    }
    let outcomes = recording.damage == nil ? Replayer.replay(recording) : []
    let result = ReplayResult(recording, outcomes)
    if svg {
      try Output.write(Array(SimulationTimeline(recording, outcomes).svg().utf8))
      Output.error(result.text)
    } else {
      var printer = ReplayPrinter(recording, asJSON: json)
      try printer.printAll()
      try printer.print(result)
    }
    if result.code != 0 { throw ExitCode(result.code) }
  }
}

/// What came of a replay.
struct ReplayResult {
  enum Kind: String {
    case replayed
    case timelineOnly = "timeline only"
    case differs
    case damaged
  }

  let kind: Kind
  /// The reason or the difference; nil if all was replayed.
  private(set) var detail: String?
  private(set) var steps: Int?
  /// Where it differs: the time in nanoseconds since 1970, and the connection.
  private(set) var at: Int64?
  private(set) var connection: UInt32?
  /// The seconds of that time since the first packet.
  private var seconds = ""
  /// What could not be replayed, if other connections were.
  private(set) var others: [String] = []

  init(
    _ recording: RecordingFile,
    _ outcomes: [(place: RecordingFile.Place, outcome: Replayer.Outcome)]
  ) {
    if let damage = recording.damage {
      kind = .damaged
      detail = damage
      return
    }
    switch Replayer.sum(outcomes) {
    case .replayed(let count):
      kind = .replayed
      steps = count
    case .timelineOnly(let why):
      kind = .timelineOnly
      detail = why
      return
    case .differs(let time, let connection, let text):
      kind = .differs
      detail = text
      at = time
      self.connection = connection
      seconds = ReplayPrinter.seconds(time, since: recording.packets.first?.time ?? time)
    }
    others = outcomes.compactMap { place, outcome in
      guard case .timelineOnly(let why) = outcome else { return nil }
      return "\(place): timeline only: \(why)"
    }
  }

  /// The last line of standard output.
  var text: String {
    let detail = detail ?? ""
    return switch kind {
    case .replayed: "replayed: \(steps ?? 0) steps"
    case .timelineOnly, .damaged: "\(kind.rawValue): \(detail)"
    case .differs: "differs at \(seconds) s, connection \(connection ?? 0): \(detail)"
    }
  }

  var code: Int32 {
    switch kind {
    case .replayed, .timelineOnly: 0
    case .differs: ExitStatus.failure
    case .damaged: ExitStatus.damaged
    }
  }
}
