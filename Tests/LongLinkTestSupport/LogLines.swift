// SPDX-License-Identifier: Apache-2.0

package import Logging
import Synchronization

/// What a logger was told, for tests to look at.
package final class LogLines: Sendable {
  package struct Line: Sendable {
    package let level: Logger.Level
    package let message: String
    package let metadata: [String: String]
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

  package init() {}

  package var all: [Line] { lines.withLock { $0 } }

  /// The lines of one message.
  package func all(_ message: String) -> [Line] { all.filter { $0.message == message } }

  /// A logger that writes here from a level on.
  package func logger(from level: Logger.Level) -> Logger {
    Logger(label: "test") { _ in Handler(lines: self, logLevel: level) }
  }

  /// A logger that writes all but traces here.
  package var logger: Logger { logger(from: .debug) }
}
