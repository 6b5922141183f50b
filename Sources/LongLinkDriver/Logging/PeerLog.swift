// SPDX-License-Identifier: Apache-2.0

package import Logging
package import LongLinkCore
internal import Synchronization

/// A rate-limited logger for lines that peers can cause.
///
/// Of each kind, `burst` lines pass at once, then one for each `interval`. A line that passes has
/// the number of lines of its kind dropped since the last one in the field `suppressed`. Lines
/// below the logger's level are not counted. It may be used from any thread; its connections share
/// one limit.
package final class PeerLog: Sendable {
  private struct Kind {
    /// When the full burst is available again; each line that passes delays it.
    var restored: LinkInstant
    var suppressed: UInt64 = 0
  }

  /// The underlying logger; use it directly for lines that no peer can cause.
  package let logger: Logger
  private let burst: Int
  private let interval: Int64
  /// By message. Messages are constants, so no peer can make this grow.
  private let kinds = Mutex<[String: Kind]>([:])

  /// Makes a log; by default five lines of a kind pass at once, then three a minute. `interval` is
  /// in nanoseconds.
  package init(_ logger: Logger, burst: Int = 5, interval: Int64 = 20_000_000_000) {
    precondition(burst > 0 && interval > 0)
    self.logger = logger
    self.burst = burst
    self.interval = interval
  }

  /// Logs a line, or counts it as suppressed. All lines with one message are of one kind, unless
  /// `kind`, which must be a constant too, tells them apart.
  package func log(
    _ level: Logger.Level, _ message: StaticString, kind: String = "", at now: LinkInstant,
    _ metadata: () -> Logger.Metadata
  ) {
    guard level >= logger.logLevel, let suppressed = admit("\(message)\(kind)", at: now) else {
      return
    }
    var metadata = metadata()
    if suppressed > 0 { metadata["suppressed"] = "\(suppressed)" }
    logger.log(level: level, "\(message)", metadata: metadata)
  }

  /// Returns the number of lines suppressed since the last one; nil if this one is suppressed too.
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
