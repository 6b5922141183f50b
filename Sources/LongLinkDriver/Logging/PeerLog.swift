// SPDX-License-Identifier: Apache-2.0

package import Logging
package import LongLinkCore
internal import Synchronization

/// A logger for lines that peers can cause: only a few a minute of each kind pass.
///
/// The first `burst` lines of a kind pass at once, then one each `interval`. A line that passes
/// tells as `suppressed` how many of its kind did not since the one before. Lines of a level that
/// the logger leaves out are not counted. It may be used from any thread; what it logs for several
/// connections is limited for all of them together.
package final class PeerLog: Sendable {
  private struct Kind {
    /// When as many lines may pass at once again as at first; each that passes moves it on.
    var restored: LinkInstant
    var suppressed: UInt64 = 0
  }

  /// Where the lines go; for those that no peer can cause.
  package let logger: Logger
  private let burst: Int
  private let interval: Int64
  /// By the lines' messages, which are constants: no peer can make their number grow.
  private let kinds = Mutex<[String: Kind]>([:])

  /// Makes a log that lets five lines of a kind pass at once, and three a minute after that.
  package init(_ logger: Logger, burst: Int = 5, interval: Int64 = 20_000_000_000) {
    precondition(burst > 0 && interval > 0)
    self.logger = logger
    self.burst = burst
    self.interval = interval
  }

  /// Logs a line, or counts it. All lines of one message are of one kind.
  package func log(
    _ level: Logger.Level, _ message: StaticString, at now: LinkInstant,
    _ metadata: () -> Logger.Metadata
  ) {
    guard level >= logger.logLevel, let suppressed = admit("\(message)", at: now) else { return }
    var metadata = metadata()
    if suppressed > 0 { metadata["suppressed"] = "\(suppressed)" }
    logger.log(level: level, "\(message)", metadata: metadata)
  }

  /// How many lines of the kind were left out since the last one; nil where this one is too.
  private func admit(_ message: String, at now: LinkInstant) -> UInt64? {
    kinds.withLock { kinds in
      var kind = kinds[message] ?? Kind(restored: now)
      defer { kinds[message] = kind }
      guard kind.restored - now <= (Int64(burst) - 1) * interval else {
        kind.suppressed += 1
        return nil
      }
      kind.restored = max(kind.restored, now) + interval
      defer { kind.suppressed = 0 }
      return kind.suppressed
    }
  }
}
