// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import Dispatch
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport
internal import Logging
internal import NIOCore
internal import Synchronization

/// Writes recordings to files, one at a time, on a thread of its own: a slow disk holds up neither
/// the server nor the port. Any thread may use it.
final class RecordingFiles: Sendable {
  typealias Outcome = Result<RecordingDirectory.Entry, FileError>

  private let directory: RecordingDirectory
  /// The reasons of connections' ends that cause recordings besides violations.
  private let reasons: Set<String>
  private let gate = Mutex(RecordingGate())
  private let thread = DispatchQueue(label: "longlink.recordings")
  private let log: PeerLog

  /// Returns nil if the configuration names no directory.
  init?(_ configuration: OperationsConfiguration) {
    guard let path = configuration.recordingsDirectory else { return nil }
    directory = RecordingDirectory(
      path: path, mostFiles: configuration.recordingsCount,
      mostBytes: configuration.recordingsBytes)
    reasons = configuration.recordingReasons
    log = PeerLog(configuration.logger)
  }

  var counts: RecordingGate.Counts { gate.withLock { $0.counts } }

  /// Whether the end of a connection for this reason causes a recording.
  func wants(_ reason: EndReason) -> Bool { reasons.contains(reason.rawValue) }

  /// Makes the directory, so that a wrong one is known before the first recording.
  func prepare() {
    thread.async { [directory, log] in
      do throws(FileError) {
        try directory.make()
      } catch {
        log.logger.error(
          "The directory for recordings cannot be used",
          metadata: ["directory": "\(directory.path)", "error": "\(error)"])
      }
    }
  }

  // MARK: Writing

  /// Begins a recording of what a link has caused. If this returns true, `write` follows.
  func begins(_ cause: String) -> Bool { gate.withLock { $0.begins(cause, at: Self.now) } }

  /// Begins a recording for an operator. If this returns true, `write` or `giveUp` follows.
  func beginsForOperator() -> Bool { gate.withLock { $0.beginsForOperator() } }

  /// Ends a recording that was begun and will not be written.
  func giveUp() { gate.withLock { $0.givesUp() } }

  /// Writes a file, and calls `then` on the thread of files. `connection` is the number of the
  /// connection that is the cause.
  func write(
    _ snapshots: [RecorderSnapshot], names: [MessageType: String], _ cause: String,
    connection: UInt64? = nil, then: @escaping @Sendable (Outcome) -> Void = { _ in }
  ) {
    thread.async { [self] in
      var writer = RecordingWriter(snapshots, names: names, links: nil)
      let outcome: Outcome
      do throws(FileError) {
        outcome = .success(try directory.write(cause) { writer.next() })
      } catch {
        outcome = .failure(error)
      }
      note(outcome, cause, connection)
      then(outcome)
    }
  }

  private func note(_ outcome: Outcome, _ cause: String, _ connection: UInt64?) {
    let cause = (name: cause, connection: connection.map { "\($0)" } ?? "none")
    switch outcome {
    case .success(let entry):
      gate.withLock { $0.ends(cause.name, isWritten: true) }
      log.log(.notice, "Wrote a recording", kind: .name(cause.name), at: Self.now) {
        [
          "file": "\(entry.name)", "bytes": "\(entry.bytes)", "cause": "\(cause.name)",
          "connection": "\(cause.connection)",
        ]
      }
    case .failure(let error):
      gate.withLock { $0.ends(cause.name, isWritten: false) }
      log.log(.error, "Could not write a recording", at: Self.now) {
        [
          "error": "\(error)", "directory": "\(directory.path)", "cause": "\(cause.name)",
          "connection": "\(cause.connection)",
        ]
      }
    }
  }

  private static var now: LinkInstant {
    LinkInstant(nanoseconds: Int64(clamping: NIODeadline.now().uptimeNanoseconds))
  }
}
#endif
