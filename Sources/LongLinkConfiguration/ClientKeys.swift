// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import Configuration
internal import LongLink
internal import LongLinkCore
internal import LongLinkDriver

extension ClientConfiguration {
  /// All keys of a client.
  static var keys: [ConfigurationKey<ClientConfiguration>] {
    serverKeys + ownKeys + limitKeys + retryKeys + reconnectKeys + errorRatioKeys
      + ConfigurationKey<Self>.heartbeat + adaptiveKeys + ConfigurationKey<Self>.recorder
  }

  private static var serverKeys: [ConfigurationKey<ClientConfiguration>] {
    [
      .texts("servers", Endpoint.form, text: { Shown.texts($0.servers.map { "\($0.endpoint)" }) }) {
        target, values in
        var endpoints: [Endpoint] = []
        for value in values {
          guard let endpoint = Endpoint(configured: value) else {
            return "has \(ConfigurationKey<Self>.quoted(value))"
          }
          endpoints.append(endpoint)
        }
        target.servers = .inOrder(endpoints)
        return nil
      }.live,
      .numbers("serverPriorities", "one for each server", \.priority, "0, 1, 2, …").live,
      .numbers("serverWeights", "1 to 1,000,000, one for each server", \.weight, "1, 1, 1, …")
        .live,
      .texts("environments", "`name=host:port`, in order", text: { _ in "none" }) {
        target, values in
        var environments: [String: [Endpoint]] = [:]
        for value in values {
          let parts = value.split(separator: "=", maxSplits: 1)
          guard parts.count == 2, let endpoint = Endpoint(configured: String(parts[1])) else {
            return "has \(ConfigurationKey<Self>.quoted(value))"
          }
          environments[String(parts[0]), default: []].append(endpoint)
        }
        target.environments = environments.mapValues { .inOrder($0) }
        return nil
      },
    ]
  }

  private static var ownKeys: [ConfigurationKey<ClientConfiguration>] {
    [
      .logLevel,
      .name,
      .text("identity.credential", "at most 60,000 bytes", text: { _ in "none" }) {
        target, value in
        target.identity.credential = { Array(value.utf8) }
        return nil
      }.live.secret,
      .flag("identity.sendsCredentialUnencrypted", \.identity.sendsCredentialUnencrypted),
      .text(
        "identity.clientFile", "the path of a file, made if there is none", text: { _ in "none" }
      ) { target, value in
        do throws(LongLinkError) {
          target.identity.client = try .file(value)
          return nil
        } catch {
          return "cannot be used: \(error.detail)"
        }
      },
      .flag("waitsForConnection", \.waitsForConnection),
      .seconds("timeouts.request", \.timeouts.request, .positive),
      .seconds("timeouts.connect", \.timeouts.connect, .positive),
      .seconds("timeouts.frame", \.timeouts.frame, .positive),
      .seconds("timeouts.lingering", \.timeouts.lingering, .positive),
    ]
  }

  private static var limitKeys: [ConfigurationKey<ClientConfiguration>] {
    [
      .integer("limits.maxWaiting", \.limits.maxWaiting, from: 0),
      .integer("limits.maxWaitingBytes", \.limits.maxWaitingBytes, from: 0, unit: "bytes"),
      .integer("limits.maxBody", \.limits.maxBody, from: 1, to: 2_147_483_648, unit: "bytes"),
      .integer("limits.maxInFlight", \.limits.maxInFlight, from: 1),
      .integer("limits.maxRequestBytes", \.limits.maxRequestBytes, from: 1, unit: "bytes"),
      .integer("limits.maxUnreadOutput", \.limits.maxUnreadOutput, from: 1, unit: "bytes"),
    ] + ConfigurationKey<Self>.waterMarks
      + ConfigurationKey<Self>.streamWindows
  }

  private static var retryKeys: [ConfigurationKey<ClientConfiguration>] {
    [
      .integer("retry.maxRetries", \.retry.maxRetries, from: 0, to: 100),
      .seconds("retry.baseDelay", \.retry.baseDelay, .positive),
      .seconds("retry.maxDelay", \.retry.maxDelay, .positive),
      .number("retry.budget", \.retry.budget, "0 or more") { $0 >= 0 },
      .number("retry.budgetPerSuccess", \.retry.budgetPerSuccess, "0 or more") { $0 >= 0 },
    ]
  }

  private static var reconnectKeys: [ConfigurationKey<ClientConfiguration>] {
    [
      .seconds("reconnect.afterClose", \.reconnect.afterClose, .notNegative),
      .seconds("reconnect.afterLostHeartbeat", \.reconnect.afterLostHeartbeat, .notNegative),
      .seconds("reconnect.afterRefused", \.reconnect.afterRefused, .positive),
      .seconds("reconnect.cap", \.reconnect.cap, .positive),
      .seconds("reconnect.longestHint", \.reconnect.longestHint, .notNegative),
      .seconds("reconnect.coolDown", \.reconnect.coolDown, .positive),
      .seconds("reconnect.longestCoolDown", \.reconnect.longestCoolDown, .positive),
      .seconds("reconnect.preferredRetry", \.reconnect.preferredRetry, .positive),
      .flag("reconnect.followsAlternatives", \.reconnect.followsAlternatives),
    ]
  }

  private static var errorRatioKeys: [ConfigurationKey<ClientConfiguration>] {
    [
      .number(
        "reconnect.errorRatio.ratio", \.errorRatio.ratio, "above 0, to 1", standard: "none"
      ) { $0 > 0 && $0 <= 1 },
      .integer(
        "reconnect.errorRatio.minimumRequests", \.errorRatio.minimumRequests, from: 1, to: 100_000),
      .integer("reconnect.errorRatio.window", \.errorRatio.window, from: 1, to: 100_000),
      .codes("reconnect.errorRatio.codes", \.errorRatio.codes),
      .flag("reconnect.errorRatio.countsDeadlines", \.errorRatio.countsDeadlines),
    ]
  }

  private static var adaptiveKeys: [ConfigurationKey<ClientConfiguration>] {
    [
      .seconds("adaptHeartbeat.shortest", \.adapted.shortest, .between(0.2, 4_000_000)),
      .seconds("adaptHeartbeat.step", \.adapted.step, .positive),
      .integer("adaptHeartbeat.successes", \.adapted.successes, from: 1),
      .seconds("adaptHeartbeat.backOff", \.adapted.backOff, .positive),
      .integer("adaptHeartbeat.failures", \.adapted.failures, from: 1),
    ]
  }

  /// The search for a heartbeat, which begins to exist when one of its keys is set.
  fileprivate var adapted: AdaptiveHeartbeat {
    get { adaptiveHeartbeat ?? AdaptiveHeartbeat() }
    set { adaptiveHeartbeat = newValue }
  }

  /// The error ratio, which begins to exist when one of its keys is set.
  fileprivate var errorRatio: ErrorRatio {
    get { reconnect.errorRatio ?? ErrorRatio(minimumRequests: 100, ratio: 0) }
    set { reconnect.errorRatio = newValue }
  }
}

extension ConfigurationKey<ClientConfiguration> {
  /// Numbers for the servers, of which there are as many.
  fileprivate static func numbers(
    _ name: String, _ range: String, _ path: any WritableKeyPath<ServerEntry, Int> & Sendable,
    _ standard: String
  ) -> Self {
    Self(
      name: name, kind: .integers, unit: "", range: range, text: { _ in standard },
      set: { target, content in
        guard case .intArray(let values) = content, values.count == target.servers.count else {
          return "does not have \(target.servers.count) numbers, as `servers` has"
        }
        for (index, value) in values.enumerated() { target.servers[index][keyPath: path] = value }
        return nil
      })
  }

  fileprivate static func codes(
    _ name: String, _ path: any WritableKeyPath<Target, Set<ResponseCode>> & Sendable
  ) -> Self {
    Self(
      name: name, kind: .integers, unit: "", range: "response codes",
      text: { $0[keyPath: path].map(\.rawValue).sorted().map(String.init).joined(separator: ", ") },
      set: { target, content in
        guard case .intArray(let values) = content else { return "is no list" }
        var codes: Set<ResponseCode> = []
        for value in values {
          guard let code = UInt32(exactly: value).flatMap(ResponseCode.init(rawValue:)) else {
            return "has \(value)"
          }
          codes.insert(code)
        }
        target[keyPath: path] = codes
        return nil
      })
  }
}
#endif
