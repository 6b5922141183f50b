// SPDX-License-Identifier: Apache-2.0

package import Logging
package import LongLinkCore
package import LongLinkTransport
internal import Synchronization

/// A rate-limited logger for lines that peers can cause.
///
/// `burst` lines of each kind pass at once, then one for each `interval`. Of these, one address
/// gets at most three at once, then one for each three intervals, so that it does not hide what
/// others cause. A line that passes says in the field `suppressed` how many lines of its kind were
/// dropped since the last one. Lines below the logger's level are not counted. Any thread may use
/// it. All connections with one log share its limits.
package final class PeerLog: Sendable {
  private struct Limit {
    /// When the full burst is available again; each line that passes delays it.
    var restored: LinkInstant

    func allows(_ burst: Int, every interval: Int64, at now: LinkInstant) -> Bool {
      restored - now <= (Int64(burst) - 1) * interval
    }

    mutating func take(every interval: Int64, at now: LinkInstant) {
      restored = max(restored, now) + interval
    }
  }

  private struct Kind {
    var all: Limit
    /// The limits of addresses that had lines in the last minutes: few, because few lines pass.
    var addresses: [SocketAddress.Group: Limit] = [:]
    var suppressed: UInt64 = 0
  }

  /// A kind of lines: those with one level, message and `LineKind`.
  private struct Line: Hashable {
    let level: Logger.Level
    let message: StaticString
    let kind: LineKind

    static func == (one: Line, other: Line) -> Bool {
      guard one.level == other.level, one.kind == other.kind else { return false }
      return one.message.withUTF8Buffer { bytes in
        other.message.withUTF8Buffer { unsafe bytes.elementsEqual($0) }
      }
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(message.utf8CodeUnitCount)
      hasher.combine(kind)
    }
  }

  /// The most lines of one kind that one address can log at once, and its interval as a multiple.
  private static let burstOfAddress = 3
  private static let intervalsOfAddress: Int64 = 3

  /// The underlying logger; use it directly for lines that no peer can cause.
  package let logger: Logger
  private let burst: Int
  private let interval: Int64
  /// The limits by kind. Messages and kinds are constants, so no peer can make this grow.
  private let kinds = Mutex<[Line: Kind]>([:])

  /// Makes a log; by default five lines of a kind pass at once, then three a minute. `interval` is
  /// in nanoseconds.
  package init(_ logger: Logger, burst: Int = 5, interval: Int64 = 20_000_000_000) {
    precondition(burst > 0 && interval > 0)
    self.logger = logger
    self.burst = burst
    self.interval = interval
  }

  /// Logs a line, or counts it as suppressed. Lines with the same level and message are of one
  /// kind, so that usual lines do not hide warnings; `kind` can distinguish more. `address` is the
  /// group of addresses whose share the line counts for; nil for none.
  package func log(
    _ level: Logger.Level, _ message: StaticString, kind: LineKind = .usual,
    of address: SocketAddress.Group? = nil, at now: LinkInstant, _ metadata: () -> Logger.Metadata
  ) {
    guard level >= logger.logLevel,
      let suppressed = admit(Line(level: level, message: message, kind: kind), of: address, at: now)
    else { return }
    var metadata = metadata()
    if suppressed > 0 { metadata["suppressed"] = "\(suppressed)" }
    logger.log(level: level, "\(message)", metadata: metadata)
  }

  /// Returns the number of lines suppressed since the last one; nil if this one is suppressed too.
  private func admit(
    _ line: Line, of address: SocketAddress.Group?, at now: LinkInstant
  ) -> UInt64? {
    kinds.withLock { kinds in
      var kind = kinds[line] ?? Kind(all: Limit(restored: now))
      defer { kinds[line] = kind }
      let slow = interval * PeerLog.intervalsOfAddress
      let share = address.map { kind.addresses[$0] ?? Limit(restored: now) }
      guard kind.all.allows(burst, every: interval, at: now),
        share?.allows(PeerLog.burstOfAddress, every: slow, at: now) ?? true
      else {
        kind.suppressed += 1
        return nil
      }
      kind.all.take(every: interval, at: now)
      if let address, var share {
        share.take(every: slow, at: now)
        kind.addresses = kind.addresses.filter { $0.value.restored > now }
        kind.addresses[address] = share
      }
      defer { kind.suppressed = 0 }
      return kind.suppressed
    }
  }
}

/// What distinguishes log lines that have one level and message, so that many of one kind do not
/// hide the others. No peer can make its values many.
package enum LineKind: Hashable, Sendable {
  case usual
  /// Of a response code with which the framework itself refuses requests: they are few.
  case code(ResponseCode)
  /// Of a constant, such as the reason of a connection's end.
  case name(String)
}
