// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import LongLinkCommandSupport
import LongLinkOnce

#if SQLite
import LongLinkOnceSQLite
#endif

/// Whether requests run once on a server, and where it keeps their answers.
struct OnceServingOptions: ParsableArguments {
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      """
      Let requests run once, and keep their answers in memory, or in this SQLite file, which is \
      made if there is none, and survives the process. A file that is called memory is ./memory.
      """, valueName: "memory|file"))
  private var once: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "How long answers are kept, at least 0.001 (default: 300).", valueName: "seconds"),
    transform: Values.time)
  private var onceRetention: Duration?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Append the key of each run of route 10 to this file, as a line.", valueName: "file",
      visibility: .private))
  private var onceEffects: String?

  func validate() throws {
    if once == "" { throw ValidationError("--once is `memory` or the path of a file.") }
    guard let onceRetention else { return }
    guard once != nil else { throw ValidationError("--once-retention needs --once.") }
    guard onceRetention >= .milliseconds(1) else {
      throw ValidationError("--once-retention is at least 0.001.")
    }
  }

  /// Opens the store; returns nil if requests do not run once.
  func open() throws -> OnceConfiguration? {
    guard let once else { return nil }
    var configuration = OnceConfiguration(
      store: once == "memory" ? .memory() : try OnceServingOptions.file(once))
    if let onceRetention { configuration.retention = onceRetention }
    return configuration
  }

  private static func file(_ path: String) throws -> any OnceStore {
    #if SQLite
    do throws(SQLiteOnceError) {
      return try SQLiteOnceStore(path: path)
    } catch {
      Output.error("\(error)")
      throw ExitCode(ExitStatus.failure)
    }
    #else
    throw Output.usageError(
      "this build keeps answers in memory alone: give `--once memory`, or build with the trait "
        + "SQLite, as `make command` does")
    #endif
  }

  /// Closes a store that `open` has opened, once its server has shut down.
  static func close(_ configuration: OnceConfiguration?) async throws {
    #if SQLite
    do {
      try await (configuration?.store as? SQLiteOnceStore)?.close()
    } catch {
      Output.error("\(error)")
      throw ExitCode(ExitStatus.failure)
    }
    #endif
  }

  /// Opens the file that gets the key of each run; returns nil if none is to.
  func effects() throws -> EffectFile? { try onceEffects.map { try EffectFile($0) } }
}
