// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import Logging
internal import Synchronization

/// The level of a logger and of all its copies, which can be changed.
final class LogLevelSwitch: Sendable {
  private let index: Atomic<Int>

  init(_ level: Logger.Level) { index = Atomic(Self.index(of: level)) }

  private static func index(of level: Logger.Level) -> Int {
    Logger.Level.allCases.firstIndex(of: level) ?? 0
  }

  var level: Logger.Level {
    get { Logger.Level.allCases[index.load(ordering: .relaxed)] }
    set { index.store(Self.index(of: newValue), ordering: .relaxed) }
  }

  /// Makes a logger have this level, until its own is set. The handler below it gets all lines that
  /// the level lets pass.
  func govern(_ logger: inout Logger) {
    var base = logger.handler
    base.logLevel = .trace
    logger.handler = SwitchedLogHandler(base: base, level: self)
  }
}

/// A log handler whose level is that of a switch.
private struct SwitchedLogHandler: LogHandler {
  var base: any LogHandler
  let level: LogLevelSwitch
  /// The level that was set on this copy of the logger; nil if none was.
  private var own: Logger.Level?

  init(base: any LogHandler, level: LogLevelSwitch) {
    self.base = base
    self.level = level
  }

  var logLevel: Logger.Level {
    get { own ?? level.level }
    set { own = newValue }
  }

  var metadata: Logger.Metadata {
    get { base.metadata }
    set { base.metadata = newValue }
  }

  var metadataProvider: Logger.MetadataProvider? {
    get { base.metadataProvider }
    set { base.metadataProvider = newValue }
  }

  subscript(metadataKey key: String) -> Logger.MetadataValue? {
    get { base[metadataKey: key] }
    set { base[metadataKey: key] = newValue }
  }

  func log(event: LogEvent) { base.log(event: event) }
}
#endif
