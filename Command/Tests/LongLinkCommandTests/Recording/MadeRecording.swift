// SPDX-License-Identifier: Apache-2.0

import LongLinkCore

/// A recording that a test makes: a server's, unless it says otherwise.
struct MadeRecording {
  private let recorder: Recorder
  private var connection: UInt32 = 0

  init(bodies: Bool = false, loop: UInt8 = 0) {
    recorder = Recorder(
      capacity: 1 << 20, recordsBodies: bodies, epoch: 1_700_000_000_000_000_000, loop: loop)
  }

  /// The recording goes on with another connection, whose beginning it has forgotten.
  mutating func goOn() { connection += 1 }

  /// A connection begins.
  mutating func begin(peer: String = "10.0.0.1:5000") {
    goOn()
    recorder.note(
      .began, of: connection, at: now,
      numbers: RecordedSettings.encode(ConnectionSettings(role: .server), id: UInt64(connection)),
      bytes: Array("\(peer)\n\nserver".utf8))
  }

  /// The side that records has read or written these frames of the connection that began last.
  func moved(_ bytes: [UInt8], received: Bool) {
    unsafe bytes.withUnsafeBytes { buffer in
      // The buffer is valid during the call.
      if received {
        unsafe recorder.noteInput(
          bytes.count, in: buffer, of: connection, at: now, from: .client, isParsed: true)
      } else {
        unsafe recorder.noteOutput(
          bytes.count, of: buffer, of: connection, at: now, from: .server, isParsed: true)
      }
    }
  }

  func note(_ event: RecordedEvent, _ numbers: [UInt64], _ bytes: [UInt8] = []) {
    recorder.note(event, of: connection, at: now, numbers: numbers, bytes: bytes)
  }

  /// The peer has broken a rule, behind this number of frames.
  func breaks(_ rule: Violation.Rule, after frames: UInt64) {
    note(
      .effect,
      RecordedEffect.encode(.report(.life(.abandon(.violation(Violation(rule))))), frames: frames))
  }

  private var now: LinkInstant { LinkInstant(nanoseconds: Int64(connection) * 1_500_000) }

  var file: [UInt8] {
    RecordingWriter.file([recorder.snapshot()], names: [7: "Echo", 8: "\u{1B}[2J"])
  }
}
