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
      made if there is none, and survives the process. A file that is called memory is ./memory. \
      Do not remove it, nor the files beside it, while it is served.
      """, valueName: "memory|file"))
  private var once: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "How long answers are kept, at least 0.001 (default: 300).", valueName: "seconds"),
    transform: Values.time)
  private var onceRetention: Duration?

  @Flag(
    help: """
      Give the file of --once a new name, at the one start after it was replaced by a backup or \
      with the machine's snapshot. It lacks what ran since then: under the new name, a request \
      that may have run before this start is refused, and does not run again.
      """)
  private var onceRestored = false

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Append the key of each run of route 10 to this file, as a line.", valueName: "file",
      visibility: .private))
  private var onceEffects: String?

  func validate() throws {
    if once == "" { throw ValidationError("--once is `memory` or the path of a file.") }
    if onceRestored, once == nil || once == "memory" {
      throw ValidationError("--once-restored needs --once with a file.")
    }
    guard let onceRetention else { return }
    guard once != nil else { throw ValidationError("--once-retention needs --once.") }
    guard onceRetention >= .milliseconds(1) else {
      throw ValidationError("--once-retention is at least 0.001.")
    }
  }

  /// Opens the store; returns nil if requests do not run once.
  func open() async throws -> OnceConfiguration? {
    guard let once else { return nil }
    var configuration = OnceConfiguration(
      store: once == "memory" ? .memory() : try await openFile(once))
    if let onceRetention { configuration.retention = onceRetention }
    return configuration
  }

  private func openFile(_ path: String) async throws -> any OnceStore {
    #if SQLite
    do {
      let store = try SQLiteOnceStore(path: path)
      guard onceRestored else { return store }
      try await store.renew()
      Output.error(
        "\(path) has a new name: requests from before this start do not run again, and get no "
          + "answers. Leave out --once-restored at the next start")
      return store
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

  /// Closes a store that `open` has opened, once its server has shut down. Throws if that takes
  /// longer than `bound`: another program may have the file locked.
  func close(_ configuration: OnceConfiguration?, within bound: Duration) async throws {
    #if SQLite
    guard let store = configuration?.store as? SQLiteOnceStore else { return }
    let ends = AsyncThrowingStream<Bool, any Error> { end in
      Task {
        do {
          try await store.close()
          end.yield(true)
        } catch {
          end.finish(throwing: error)
        }
      }
      Task {
        try? await Task.sleep(for: bound)
        end.yield(false)
      }
    }
    do {
      if try await ends.first(where: { _ in true }) == true { return }
      Output.error(
        "\(once ?? ""): the file was not closed within \(bound), perhaps because another program "
          + "has it locked. The next start finds what was written")
    } catch {
      Output.error("\(error)")
    }
    throw ExitCode(ExitStatus.failure)
    #endif
  }

  /// Opens the file that gets the key of each run; returns nil if none is to.
  func effects() throws -> EffectFile? { try onceEffects.map { try EffectFile($0) } }
}
