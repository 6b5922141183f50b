// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import Configuration
internal import Logging
internal import LongLink
internal import LongLinkDriver
internal import Synchronization

/// The keys below one prefix, and the clients or servers that follow them.
final class ConfigurationSection<Target: Configurable>: Sendable {
  typealias Follower = @Sendable (Target, _ changed: Set<String>) -> Void

  private struct State {
    /// The values with which the configuration was made.
    let start: [String: Setting]
    /// The values that are in effect: of a key that is not live, the one at the start.
    var running: [String: Setting]
    /// The values that were read last.
    var latest: [String: Setting]
    var followers: [Follower] = []
  }

  let prefix: String
  /// The configuration in which the keys set values.
  private let base: Target
  private let level: LogLevelSwitch
  private let state: Mutex<State>
  private let keys = Target.keys
  /// The names of the sources.
  private let sources: String

  /// Reads the keys below a prefix.
  init(
    _ base: Target, under prefix: String, _ reader: SettingsReader
  ) throws(LongLinkError) {
    self.prefix = prefix
    self.base = base
    sources = reader.names
    let settings = try reader.settings(keys, under: prefix)
    state = Mutex(State(start: settings, running: settings, latest: settings))
    level = LogLevelSwitch(base.logger.logLevel)
  }

  /// The configuration with the values that are in effect. Its logger has a level that changes.
  func configuration() throws(LongLinkError) -> Target {
    var target = try configuration(with: state.withLock { $0.running })
    level.level = target.logger.logLevel
    level.govern(&target.logger)
    target.changesLogLevel = true
    return target
  }

  /// Calls a function when values of live keys change, and at once if some have changed already.
  func follow(_ follower: @escaping Follower) {
    let (start, running) = state.withLock { state in
      state.followers.append(follower)
      return (state.start, state.running)
    }
    let changed = keys.map(\.name).filter { start[$0]?.content != running[$0]?.content }
    // These values were valid together.
    guard !changed.isEmpty, let target = try? configuration(with: running) else { return }
    follower(target, Set(changed))
  }

  /// Takes new values. Those of live keys take effect; returns the names of the keys whose values
  /// did, and of those that will after a restart. Throws, and changes nothing, if the new values
  /// are not valid.
  func reload(_ reader: SettingsReader) throws(LongLinkError) -> (now: [String], later: [String]) {
    let new = try reader.settings(keys, under: prefix)
    let (running, latest) = state.withLock { ($0.running, $0.latest) }
    let changed = keys.filter { new[$0.name]?.content != latest[$0.name]?.content }
    guard !changed.isEmpty else { return ([], []) }
    // After a restart all values are in effect, and until then those of live keys.
    _ = try configuration(with: new)
    var next = running
    var (now, later): ([String], [String]) = ([], [])
    for key in changed {
      if key.isLive(from: running[key.name], to: new[key.name]) {
        next[key.name] = new[key.name]
        now.append(key.name)
      } else {
        later.append(key.name)
      }
    }
    let target = try configuration(with: next)
    let followers = state.withLock { state in
      state.running = next
      state.latest = new
      return state.followers
    }
    level.level = target.logger.logLevel
    if !now.isEmpty { for follower in followers { follower(target, Set(now)) } }
    return (now.map { "\(prefix).\($0)" }, later.map { "\(prefix).\($0)" })
  }

  private func configuration(with settings: [String: Setting]) throws(LongLinkError) -> Target {
    var target = base
    for key in keys {
      guard let setting = settings[key.name] else { continue }
      if let objection = key.set(&target, setting.content) {
        throw .configuration("\(prefix).\(key.name)", text(objection, setting, key))
      }
    }
    do {
      try target.validate()
    } catch {
      throw named(error, settings)
    }
    return target
  }

  private func text(
    _ objection: String, _ setting: Setting, _ key: ConfigurationKey<Target>
  ) -> String {
    var value = "its value"
    if !setting.isSecret {
      switch setting.content {
      case .int(let number): value = "\(number)"
      case .double(let number): value = Shown.number(number)
      case .string(let text): value = ConfigurationKey<Target>.quoted(text)
      default: break
      }
    }
    return "\(setting.place): \(value) \(objection): it has to be \(key.expected)"
  }

  /// The error of a validation, with the key in place of the field.
  private func named(_ error: LongLinkError, _ settings: [String: Setting]) -> LongLinkError {
    let field = error.field ?? ""
    let key = keys.first { field == $0.name || field.hasPrefix("\($0.name)[") }
    let place = key.flatMap { settings[$0.name]?.place } ?? "no value in \(sources)"
    return .configuration("\(prefix).\(field)", "\(place): \(error.detail)")
  }
}
#endif
