// SPDX-License-Identifier: Apache-2.0

import Logging
import Synchronization

/// What a logger was told, for tests to look at.
final class LogLines: Sendable {
  struct Line: Sendable {
    let level: Logger.Level
    let message: String
    let metadata: [String: String]
  }

  private struct Handler: LogHandler {
    let lines: LogLines
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.MetadataValue? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      let all = metadata.merging(event.metadata ?? [:]) { _, told in told }
      let line = Line(
        level: event.level, message: "\(event.message)", metadata: all.mapValues { "\($0)" })
      lines.lines.withLock { $0.append(line) }
    }
  }

  private let lines = Mutex<[Line]>([])

  /// The lines about uploads.
  var uploads: [Line] { lines.withLock { $0 }.filter { $0.message.contains("upload") } }

  /// A logger that writes here.
  var logger: Logger {
    Logger(label: "test") { _ in Handler(lines: self, logLevel: .info) }
  }
}
