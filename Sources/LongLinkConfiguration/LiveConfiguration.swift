// SPDX-License-Identifier: Apache-2.0

#if Operations
public import Logging
public import LongLink
internal import LongLinkCore
public import LongLinkDriver
public import LongLinkServer
internal import Synchronization

/// The configuration of servers and clients from the environment, files and other sources, which
/// are read again while the program runs.
///
/// ```swift
/// let live = try await LiveConfiguration(.environment, .json("/etc/hub.json"))
/// let server = try LongLinkServer(live.server())
/// live.follow(server)
/// ```
///
/// If several sources have a key, the first one has precedence. <doc:ConfigurationKeys> lists all
/// keys. As a service of a `ServiceGroup`, it reads the sources again at each SIGHUP, and every
/// `interval`.
public final class LiveConfiguration: Sendable {
  private struct State {
    var reader: SettingsReader
    var servers: [ConfigurationSection<ServerConfiguration>] = []
    var clients: [ConfigurationSection<ClientConfiguration>] = []
    /// The number of the last reload that has begun, and of the one whose values are in effect.
    var begun = 0
    var applied = 0
    /// The last error of a reload, which is logged once.
    var problem: String?
  }

  private let sources: [ConfigurationSource]
  /// How often a service reads the sources again.
  let interval: Duration
  private let logger: Logger
  private let state: Mutex<State>

  /// Makes a live configuration, and reads its sources for the first time.
  ///
  /// As a service it reads them again every `interval`, which is above zero. Default 10 s. It logs
  /// changes and errors with `logger`. Throws `invalidConfiguration`, which names the source, if
  /// one cannot be read, and if `interval` is not above zero.
  public init(
    _ sources: ConfigurationSource..., every interval: Duration = .seconds(10),
    logger: Logger = Logger(label: "longlink.configuration")
  ) async throws(LongLinkError) {
    guard interval > .zero else {
      throw .configuration("interval", "\(interval) is not above zero")
    }
    self.sources = sources
    self.interval = interval
    self.logger = logger
    state = Mutex(State(reader: try await SettingsReader(sources)))
  }

  /// Returns a configuration of a server: `base`, in which the keys below `prefix` have set their
  /// values.
  ///
  /// If your code sets a value for which there is a key, set it in `base`: set in the result, it
  /// can be lost when a key changes at run time. Throws `invalidConfiguration`, whose `field` is
  /// the key and whose `detail` names the source, if a value is not allowed.
  public func server(
    _ base: ServerConfiguration = ServerConfiguration(listen: []), under prefix: String = "server"
  ) throws(LongLinkError) -> ServerConfiguration {
    let section = try ConfigurationSection(base, under: prefix, state.withLock { $0.reader })
    let configuration = try section.configuration()
    state.withLock { $0.servers.append(section) }
    return configuration
  }

  /// Returns a configuration of a client: `base`, in which the keys below `prefix` have set their
  /// values.
  ///
  /// If your code sets a value for which there is a key, set it in `base`: set in the result, it
  /// can be lost when a key changes at run time. Throws `invalidConfiguration`, whose `field` is
  /// the key and whose `detail` names the source, if a value is not allowed.
  public func client(
    _ base: ClientConfiguration = ClientConfiguration(servers: [ServerEntry]()),
    under prefix: String = "client"
  ) throws(LongLinkError) -> ClientConfiguration {
    let section = try ConfigurationSection(base, under: prefix, state.withLock { $0.reader })
    var configuration = try section.configuration()
    if let credential = configuration.identity.credential {
      let held = CurrentCredential(credential)
      configuration.identity.credential = { try await held.value() }
      section.follow { new, changed in
        if changed.contains("identity.credential"), let credential = new.identity.credential {
          held.set(credential)
        }
      }
    }
    state.withLock { $0.clients.append(section) }
    return configuration
  }

  /// Applies changes of keys to a server while it runs. The server was made with the configuration
  /// that `server(_:under:)` has returned last for this prefix; it traps if there is none.
  ///
  /// The keys are those whose changes take effect at once: limits of new connections. The level of
  /// the server's logger changes without this call. The server is not retained.
  public func follow(_ server: LongLinkServer, under prefix: String = "server") {
    guard let section = state.withLock({ $0.servers.last { $0.prefix == prefix } }) else {
      preconditionFailure("no configuration of a server was made under \(prefix)")
    }
    section.follow { [weak server, logger] new, _ in
      guard let server else { return }
      var configuration = server.configuration
      configuration.limits = new.limits
      configuration.addresses = new.addresses
      configuration.timeouts = new.timeouts
      do {
        try configuration.validate()
        server.change(to: configuration)
      } catch {
        logger.warning("Could not change a server", metadata: ["error": "\(error)"])
      }
    }
  }

  /// Applies changes of keys to a client while it runs. The client was made with the configuration
  /// that `client(_:under:)` has returned last for this prefix; it traps if there is none.
  ///
  /// The keys are those of its servers. Its credential and the level of its logger change without
  /// this call. The client is not retained.
  public func follow(_ client: LongLinkClient, under prefix: String = "client") {
    guard let section = state.withLock({ $0.clients.last { $0.prefix == prefix } }) else {
      preconditionFailure("no configuration of a client was made under \(prefix)")
    }
    let keys: Set = ["servers", "serverPriorities", "serverWeights"]
    section.follow { [weak client, logger] new, changed in
      guard let client, !changed.isDisjoint(with: keys) else { return }
      do {
        try client.switchServers(to: new.servers)
      } catch {
        logger.warning("Could not change a client", metadata: ["error": "\(error)"])
      }
    }
  }
}

// MARK: - Reloading

extension LiveConfiguration {
  /// Reads the sources again. Changes of keys that allow it take effect at once; these and the
  /// changes that take effect after a restart are logged.
  ///
  /// If a source cannot be read, nothing changes; if a value is not allowed, the configuration of
  /// that server or client stays as it was. A warning names the source and the key; it is not
  /// repeated while the error stays the same.
  public func reload() async {
    let number = state.withLock { state in
      state.begun += 1
      return state.begun
    }
    let reader: SettingsReader
    do throws(LongLinkError) {
      reader = try await SettingsReader(sources)
    } catch {
      return report([error])
    }
    let sections = state.withLock { state -> State? in
      // Another reload, which began later, may have ended earlier.
      guard number > state.applied else { return nil }
      state.applied = number
      state.reader = reader
      return state
    }
    guard let sections else { return }
    var problems: [LongLinkError] = []
    for section in sections.servers { apply(reader, to: section, &problems) }
    for section in sections.clients { apply(reader, to: section, &problems) }
    report(problems)
  }

  private func apply(
    _ reader: SettingsReader, to section: ConfigurationSection<some Configurable>,
    _ problems: inout [LongLinkError]
  ) {
    do throws(LongLinkError) {
      let changed = try section.reload(reader)
      if !changed.now.isEmpty {
        logger.info("Configuration changed", metadata: ["keys": "\(changed.now)"])
      }
      if !changed.later.isEmpty {
        logger.notice(
          "A change of the configuration takes effect after a restart",
          metadata: ["keys": "\(changed.later)"])
      }
    } catch {
      problems.append(error)
    }
  }

  /// Logs problems unless they are those of the last reload.
  private func report(_ problems: [LongLinkError]) {
    let text = problems.map { "\($0)" }.joined(separator: "; ")
    let isNew = state.withLock { state in
      defer { state.problem = text }
      return state.problem ?? "" != text
    }
    guard isNew, !text.isEmpty else { return }
    logger.warning(
      "The configuration cannot be used, and the former one stays", metadata: ["error": "\(text)"])
  }
}

/// The credential of a client, which changes.
private final class CurrentCredential: Sendable {
  typealias Source = @Sendable () async throws -> [UInt8]

  private let source: Mutex<Source>

  init(_ source: @escaping Source) { self.source = Mutex(source) }

  func set(_ source: @escaping Source) { self.source.withLock { $0 = source } }

  func value() async throws -> [UInt8] { try await source.withLock { $0 }() }
}
#endif
