// SPDX-License-Identifier: Apache-2.0

#if Operations
import ArgumentParser
import LongLinkCommandSupport
import LongLinkOps
import LongLinkServer

/// What the server records of its connections, and which recordings it writes to files.
struct RecordingOptions: ParsableArguments {
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      """
      Write a recording of what connections did into this directory when a client breaks a rule, \
      and at `POST /recording` of --ops. It is made if there is none.
      """,
      valueName: "directory"))
  private var recordings: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "How many recordings to keep (default: 16). The oldest go first.", valueName: "number"),
    transform: Values.count)
  private var recordingsCount: Int?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "The size of all recordings together (default: 268435456).", valueName: "bytes"),
    transform: Values.count)
  private var recordingsBytes: Int?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      """
      How much each loop remembers of what its connections did, for recordings (default: 4194304); \
      0 for nothing.
      """,
      valueName: "bytes"),
    transform: Values.size)
  private var recorder: Int?

  @Flag(help: "Record the bodies of messages too, which may be personal.")
  private var recordBodies = false

  /// Whether there are files with recordings.
  var areWritten: Bool { recordings != nil }

  func validate() throws {
    guard recordings != nil || recordingsCount == nil && recordingsBytes == nil else {
      throw ValidationError("--recordings-count and --recordings-bytes need --recordings.")
    }
  }

  /// Sets what the server records.
  func set(in configuration: inout ServerConfiguration) {
    if let recorder { configuration.recorderBytes = recorder }
    configuration.recordsBodies = recordBodies
  }

  /// Sets which recordings are written to files.
  func set(in configuration: inout OperationsConfiguration) {
    configuration.recordingsDirectory = recordings
    if let recordingsCount { configuration.recordingsCount = recordingsCount }
    if let recordingsBytes { configuration.recordingsBytes = recordingsBytes }
  }
}
#endif
