// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore
public import Logging
internal import LongLinkTransport

/// What a client is to do. Every field but the servers has a default.
public struct ClientConfiguration: Sendable {
  /// The servers, of which one is used; the others stand in when it fails.
  public var servers: [ServerEntry]
  /// Lists of servers by the names that `switchEnvironment(to:)` knows them by. Default: none.
  public var environments: [String: [ServerEntry]] = [:]
  /// Which protocol is spoken. Default: the native one.
  ///
  /// A dialect's own heartbeat then holds in place of `heartbeat.interval` and `heartbeat.timeout`.
  public var dialect = Dialect.native
  /// How long a request may take where it says nothing, from its creation on. Default 15 s.
  public var timeout: Duration = .seconds(15)
  /// What happens to requests while there is no connection. Default: they wait.
  public var offline: OfflinePolicy = .wait
  /// The most requests that may wait for a connection, for room on it, or to be sent again. Default
  /// 10,000.
  ///
  /// One more fails with `overloaded`. Those that come back from a lost connection are in the count
  /// and are never turned away.
  public var maxWaiting = 10_000
  /// The most bytes that the bodies of all waiting requests may take together, and those of waiting
  /// pushes. Default 16 MiB each.
  public var maxWaitingBytes = 16_777_216
  /// How requests are retried.
  public var retry = RetryPolicy()
  /// Where requests and pushes begin to wait, and where they go on, by the bytes that wait to be
  /// written. Defaults: 1 MiB, 512 KiB, and 32 MiB of large bodies.
  public var waterMarks = WaterMarks()
  /// The most bytes that may wait for a server which does not read: the answer to one of its
  /// requests that comes when more wait already ends the connection. At least `waterMarks.high`.
  /// Default 64 MiB.
  public var maxUnreadOutput = 67_108_864
  /// How long one connect may take, its handshake included. Default 10 s.
  public var connectTimeout: Duration = .seconds(10)
  /// How a dead server is found. The server may agree to a shorter one.
  public var heartbeat = Heartbeat()
  /// How the client looks for the longest interval that its network allows, up to the heartbeat's
  /// own. Default: it does not, and pings at that one.
  public var adaptiveHeartbeat: AdaptiveHeartbeat?
  /// Where the client keeps what an adaptive heartbeat learns about each network. Default: nowhere.
  public var heartbeatMemory: (any HeartbeatMemory)?
  /// How long to wait before connecting again.
  public var reconnect = ReconnectPolicy()
  /// How to choose between servers.
  public var serverPolicy = ServerPolicy()
  /// How long a link that was left for another one may wait for its last answers. Default 60 s.
  ///
  /// Then it is closed, and what it still carries fails with `connectionLost`.
  public var lingering: Duration = .seconds(60)
  /// The largest body that is accepted from the server, in bytes. Default 16 MiB.
  public var maxBody = 16_777_216
  /// The most requests of the server at once; further ones are refused with 429. A request counts
  /// until it is answered and its handler has returned. Default 1,024.
  public var maxInFlight = 1_024
  /// The most bytes that the server's unfinished requests and pushes, and the bodies of its
  /// requests whose handlers have not returned, may hold together. Past it requests are refused
  /// with 429, and a push ends the connection. At least `maxBody`. Default 32 MiB.
  ///
  /// Answers to this client's requests do not count: each is at most `maxBody`.
  public var maxRequestBytes = 33_554_432
  /// How long one frame may take from its first byte to its last. Default 30 s.
  public var frameTimeout: Duration = .seconds(30)
  /// The name by which the server's log knows this client. Default: none.
  public var name = ""
  /// Where the client logs. Bodies are never logged.
  ///
  /// Default: a logger with the label `longlink.client`. In a simulation it logs warnings alone.
  public var logger: Logger {
    get { configuredLogger.logger }
    set { configuredLogger.logger = newValue }
  }
  private var configuredLogger = ConfiguredLogger(label: "longlink.client")

  /// Makes a configuration for one or more servers, the most wanted first.
  public init(servers: [Endpoint]) {
    self.servers = ServerEntry.ordered(servers)
  }

  /// Makes a configuration for servers with priorities and weights.
  public init(servers: [ServerEntry]) {
    self.servers = servers
  }

  /// Makes a configuration for several environments, of which one is used at first.
  public init(environments: [String: [ServerEntry]], initial: String) {
    servers = environments[initial] ?? []
    self.environments = environments
  }

  /// Throws `invalidConfiguration`, naming the field, when the configuration cannot work.
  public func validate() throws(LongLinkError) {
    try ServerEntry.validate(servers, field: "servers")
    for name in environments.keys.sorted() {
      try ServerEntry.validate(environments[name] ?? [], field: "environments[\(name)]")
    }
    try ClientConfiguration.positive(timeout, "timeout")
    try ClientConfiguration.positive(connectTimeout, "connectTimeout")
    try ClientConfiguration.positive(frameTimeout, "frameTimeout")
    try ClientConfiguration.positive(lingering, "lingering")
    try validateReconnect()
    try validateServerPolicy()
    try heartbeat.validate(field: "heartbeat")
    try adaptiveHeartbeat?.validate(within: dialect.heartbeat(heartbeat))
    try validateDialect()
    if maxWaiting < 0 { throw .configuration("maxWaiting", "it is negative") }
    if maxWaitingBytes < 0 { throw .configuration("maxWaitingBytes", "it is negative") }
    try retry.validate(field: "retry")
    try waterMarks.validate(field: "waterMarks")
    if maxUnreadOutput < waterMarks.high {
      throw .configuration("maxUnreadOutput", "it is below waterMarks.high")
    }
    if maxInFlight < 1 { throw .configuration("maxInFlight", "it is below 1") }
    if maxBody < 1 || maxBody > 1 << 31 {
      throw .configuration("maxBody", "it is not within 1 and 2,147,483,648")
    }
    if maxRequestBytes < maxBody {
      throw .configuration("maxRequestBytes", "it is below maxBody")
    }
    if name.utf8.contains(0) { throw .configuration("name", "it contains a NUL") }
    if name.utf8.count > 1024 { throw .configuration("name", "it is longer than 1,024 bytes") }
  }

  /// This configuration, with what depends on the client's loop.
  func settled(on loop: EventLoop) -> ClientConfiguration {
    var configuration = self
    configuration.configuredLogger.settle(on: loop)
    return configuration
  }

  private func validateDialect() throws(LongLinkError) {
    try dialect.validate(.client, field: "dialect")
    guard let facts = dialect.facts(.client) else { return }
    if adaptiveHeartbeat != nil, !facts.pingsAreAnswered {
      throw .configuration(
        "adaptiveHeartbeat", "in \(facts.name) no ping of a client is answered")
    }
  }

  private func validateReconnect() throws(LongLinkError) {
    try ClientConfiguration.positive(reconnect.afterRefused, "reconnect.afterRefused")
    if reconnect.afterClose < .zero {
      throw .configuration("reconnect.afterClose", "it is negative")
    }
    if reconnect.afterLostHeartbeat < .zero {
      throw .configuration("reconnect.afterLostHeartbeat", "it is negative")
    }
    if reconnect.longestHint < .zero {
      throw .configuration("reconnect.longestHint", "it is negative")
    }
    if reconnect.cap < reconnect.afterRefused {
      throw .configuration("reconnect.cap", "it is below reconnect.afterRefused")
    }
  }

  private func validateServerPolicy() throws(LongLinkError) {
    let field = "serverPolicy"
    try ClientConfiguration.positive(serverPolicy.coolDown, "\(field).coolDown")
    try ClientConfiguration.positive(serverPolicy.preferredRetry, "\(field).preferredRetry")
    if serverPolicy.longestCoolDown < serverPolicy.coolDown {
      throw .configuration("\(field).longestCoolDown", "it is below \(field).coolDown")
    }
    guard let ratio = serverPolicy.errorRatio else { return }
    if ratio.minimumRequests < 1 {
      throw .configuration("\(field).errorRatio.minimumRequests", "it is below 1")
    }
    if !(ratio.minimumRequests...100_000).contains(ratio.window) {
      throw .configuration(
        "\(field).errorRatio.window", "\(ratio.window) is not within minimumRequests and 100,000")
    }
    if !(ratio.ratio > 0 && ratio.ratio <= 1) {
      throw .configuration("\(field).errorRatio.ratio", "\(ratio.ratio) is not within 0 and 1")
    }
  }

  private static func positive(_ duration: Duration, _ field: String) throws(LongLinkError) {
    if duration <= .zero { throw .configuration(field, "\(duration) is not above zero") }
  }

  /// The bounds of the requests.
  var requestLimits: RequestLimits {
    RequestLimits(
      maxWaiting: maxWaiting, maxWaitingBytes: maxWaitingBytes, retry: retry,
      longestHint: reconnect.longestHint)
  }

  /// What each connection is told. Throws where a session prefix does not fit.
  func connectionSettings() throws(FrameLayoutError) -> ConnectionSettings {
    var settings = ConnectionSettings(role: .client)
    let heartbeat = dialect.heartbeat(heartbeat)
    settings.dialect = try dialect.source?.framing(.client, maxBody: maxBody)
    settings.maxBody = maxBody
    settings.maxInFlight = maxInFlight
    settings.maxRequestBytes = maxRequestBytes
    settings.heartbeatInterval = heartbeat.interval.clampedNanoseconds
    settings.heartbeatTimeout = heartbeat.timeout.clampedNanoseconds
    settings.missedDeadlines = heartbeat.missedDeadlines
    settings.handshakeTimeout = connectTimeout.clampedNanoseconds
    settings.frameTimeout = frameTimeout.clampedNanoseconds
    settings.writingTimeout = (heartbeat.interval + heartbeat.timeout).clampedNanoseconds
    settings.maxUnread = maxUnreadOutput
    settings.waterMarks = waterMarks.limited(by: maxUnreadOutput)
    settings.name = name
    return settings
  }
}
