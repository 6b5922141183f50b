// SPDX-License-Identifier: Apache-2.0

#if Operations
public import Configuration
internal import LongLinkCore
internal import LongLinkDriver
internal import SystemPackage

/// A source of values for a ``LiveConfiguration``.
public struct ConfigurationSource: Sendable {
  /// The name of the source in errors.
  let name: String
  private let make: @Sendable () async throws -> any ConfigProvider

  /// The environment of the process, which is read once, when you make the source. The key
  /// `server.limits.maxBody` is the variable `SERVER_LIMITS_MAX_BODY`; commas separate the elements
  /// of a list.
  public static var environment: ConfigurationSource {
    .provider(EnvironmentVariablesProvider(), named: "the environment")
  }

  /// Returns a source that reads a JSON file, again at each reload. The key `server.limits.maxBody`
  /// is the member `maxBody` of `limits` of `server`.
  ///
  /// If `isOptional` is true, a file that does not exist counts as empty; otherwise that is an
  /// error. Default false.
  public static func json(_ path: String, isOptional: Bool = false) -> ConfigurationSource {
    ConfigurationSource(name: path) {
      try await FileProvider<JSONSnapshot>(filePath: FilePath(path), allowMissing: isOptional)
    }
  }

  /// Returns a source for any provider of swift-configuration, whose current values are read at
  /// each reload. `name` names it in errors; nil, the default, for the provider's own name.
  public static func provider(
    _ provider: some ConfigProvider, named name: String? = nil
  ) -> ConfigurationSource {
    ConfigurationSource(name: name ?? provider.providerName) { provider }
  }

  private init(name: String, make: @escaping @Sendable () async throws -> any ConfigProvider) {
    self.name = name
    self.make = make
  }

  /// Reads the source.
  func snapshot() async throws(LongLinkError) -> any ConfigSnapshot {
    do {
      return try await make().snapshot()
    } catch {
      throw .configuration(name, "it cannot be read: \(PeerText("\(error)"))")
    }
  }
}
#endif
