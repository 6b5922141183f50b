// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import Configuration
internal import LongLinkCore
internal import LongLinkDriver

/// A value that a source has for a key.
struct Setting: Equatable, Sendable {
  let content: ConfigContent
  /// The key in the form of its source, and the source.
  let place: String
  /// Whether the source, or the table, says that the value must not be shown.
  let isSecret: Bool
}

/// The values of all sources at one time.
struct SettingsReader: Sendable {
  private let snapshots: [(source: String, snapshot: any ConfigSnapshot)]

  /// Reads the sources. Throws `invalidConfiguration`, with the source's name, if one cannot be
  /// read.
  init(_ sources: [ConfigurationSource]) async throws(LongLinkError) {
    var snapshots: [(String, any ConfigSnapshot)] = []
    for source in sources { snapshots.append((source.name, try await source.snapshot())) }
    self.snapshots = snapshots
  }

  /// The names of the sources, as text.
  var names: String { snapshots.map(\.source).joined(separator: ", ") }

  /// The values of all keys below a prefix, by the keys' names. A source that comes first has
  /// precedence. Throws `invalidConfiguration` if a value is not of its key's kind.
  func settings<Target>(
    _ keys: [ConfigurationKey<Target>], under prefix: String
  ) throws(LongLinkError) -> [String: Setting] {
    var found: [String: Setting] = [:]
    for key in keys { found[key.name] = try setting(of: key, under: prefix) }
    return found
  }

  private func setting<Target>(
    of key: ConfigurationKey<Target>, under prefix: String
  ) throws(LongLinkError) -> Setting? {
    let name = "\(prefix).\(key.name)"
    let path = AbsoluteConfigKey(name.split(separator: ".").map(String.init))
    for (source, snapshot) in snapshots {
      let result: LookupResult
      do {
        result = try snapshot.value(forKey: path, type: key.kind.type)
      } catch {
        throw objection(to: key, name, path, snapshot, source)
      }
      guard let value = result.value else { continue }
      return Setting(
        content: value.content, place: "\(result.encodedKey) in \(source)",
        isSecret: key.isSecret || value.isSecret)
    }
    return nil
  }

  /// The error of a value that is not of its key's kind. What the source says itself may contain
  /// the value, and is left out.
  private func objection<Target>(
    to key: ConfigurationKey<Target>, _ name: String, _ path: AbsoluteConfigKey,
    _ snapshot: any ConfigSnapshot, _ source: String
  ) -> LongLinkError {
    let text = try? snapshot.value(forKey: path, type: .string)
    var value = "its value"
    if !key.isSecret, let found = text?.value, !found.isSecret,
      case .string(let raw) = found.content
    {
      value = ConfigurationKey<Target>.quoted(raw)
    }
    return .configuration(
      name,
      "\(text?.encodedKey ?? name) in \(source): \(value) is not allowed: it has to be "
        + "\(key.expected)")
  }
}
#endif
