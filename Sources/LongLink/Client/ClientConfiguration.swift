// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore
public import Logging
public import LongLinkTransport

/// The configuration of a client. Every field but the servers has a default.
public struct ClientConfiguration: Sendable {
  /// The servers; at least one. The client uses one at a time, and another when it fails.
  ///
  /// `.inOrder([…])` prefers the first, and `.balanced([…])` spreads clients over all of them. See
  /// ``ServerEntry`` for lists between these.
  public var servers: [ServerEntry]
  /// Lists of servers by the names that `switchEnvironment(to:)` accepts. Default: none.
  public var environments: [String: [ServerEntry]] = [:]
  /// The ways in which requests are sent, in order of preference. Default: the long link alone.
  ///
  /// At least one. The long link, if it is among them, must be the first; the client tries to make
  /// it whenever there is no connection. See <doc:ShortLinks>.
  public var ways: [Way] = [.longLink]
  /// The wire protocol. Default: the native one.
  ///
  /// A dialect's heartbeat times replace `heartbeat.interval` and `heartbeat.timeout`.
  public var dialect = Dialect.native
  /// The security of the connections to servers: `.tls(…)`, with the product LongLinkTLS. Default
  /// nil: the connections are not encrypted, and an attacker on the path can read and change
  /// everything.
  ///
  /// Short links are secured by their way, for example a URL with `https`.
  public var security: ClientSecurity?
  /// Who the client is to a server, and how it proves that. Default: an identity of its own, and no
  /// credential.
  public var identity = Identity()
  /// A function that sends what a server has to hear first on each new connection, such as a
  /// registration or a subscription. Default nil: there is none.
  ///
  ///     configuration.prepare = { connection in
  ///       _ = try await RoomClient(connection).join(room)
  ///     }
  ///
  /// The client calls it once the handshake of a connection is complete: of the first one, and of
  /// each with which it reconnects or moves. Until it has returned, the client's requests wait, or
  /// go over the connection that is about to be replaced, and `connect()` waits. It runs in a task
  /// on the client's loop, which it must not block. What it sends through its argument goes over
  /// the new connection. The server's requests and pushes are handled meanwhile as always. Do not
  /// wait there for requests of the client itself, which may wait for it.
  ///
  /// If it throws, or does not return within `timeouts.connect`, which is counted from the start of
  /// the connect, the connect has failed: the task is cancelled, the client leaves the connection,
  /// and tries again as after any other failed connect. `connect()` throws `connectFailed`, whose
  /// `detail` has the error. Pushes that the server has sent on the connection by then still
  /// arrive. The task is also cancelled if the connection ends, and by `close` and `suspend`. A
  /// function that ignores its cancellation goes on beside the next call.
  ///
  /// Requests through its argument fail with `overloaded` instead of waiting for room, and are not
  /// retried: the next connect repeats all of it. One with `RetryMode.once` runs once, but the next
  /// connect makes it as a new one; give it an `OnceTicket` to repeat it. Those that go on when it
  /// has returned, such as a stream, stay on the connection until they end. The renewal of a
  /// credential on a connection does not call it, and neither do short links, each of which carries
  /// a single request.
  public var prepare: (@Sendable (Peer) async throws -> Void)?
  /// Functions that are called before each request of the client, in this order: for trace
  /// contexts, measurements and refusals. Default: none.
  ///
  ///     configuration.interceptors = [
  ///       { request in
  ///         request.options.metadata["traceparent"] = Trace.current
  ///         request.whenEnded { error, time in meter.record(time, failed: error != nil) }
  ///       }
  ///     ]
  ///
  /// They see requests and streams in all forms: awaited, with handles, with completion handlers,
  /// on plain threads, through generated clients, and through the client's peers, such as that of
  /// `prepare`. A function may change the options, and ask for the end of the request. If it
  /// throws, the request is not made: its caller gets the error, if that is a `LongLinkError`;
  /// `cancelled` for a `CancellationError`; and else `intercepted` with the error's text as
  /// `detail`, all with delivery `notSent`.
  ///
  /// Each is called in the task or on the thread of the caller, so that task-local values are
  /// there, except for calls of a `CallClient` and for streams with `resuming:`, which are made on
  /// the client's loop. It must not block. A stream is made when it is iterated. Pushes and pings
  /// do not pass through them. They cannot change the message or the response, wait, or send a
  /// request again: the interceptors of a `CallClient` can.
  public var interceptors: [@Sendable (inout InterceptedRequest) throws -> Void] = []
  /// Limits on what waits, what is kept, and what is accepted from the server. Each has a default.
  public var limits = Limits()
  /// Timeouts of requests, connects, frames and replaced connections. Each has a default.
  public var timeouts = Timeouts()
  /// Whether requests wait while there is no connection; see `RequestOptions.waitsForConnection`.
  /// Default true.
  public var waitsForConnection = true
  /// How requests are retried. Default: at most 5 times, within a budget; see `RetryPolicy`.
  public var retry = RetryPolicy()
  /// How a dead server is detected. Default: by a ping after 30 s of silence, with 10 s for any
  /// answer. The server may shorten both times.
  public var heartbeat = Heartbeat()
  /// How the client searches for the longest ping interval that its network allows; nil if it
  /// always uses `heartbeat.interval`.
  package var adaptiveHeartbeat: AdaptiveHeartbeat?
  /// How the client chooses between servers, and the delays before reconnecting. Default: by
  /// priority and weight, where a server that failed cools down for 5 s or longer; and random
  /// delays within a window that grows up to 30 s. See `ReconnectPolicy`.
  public var reconnect = ReconnectPolicy()
  /// The client's name in the server's logs: at most 1,024 bytes, without NUL. Default: none.
  public var name = ""
  /// The most bytes of the ring in which the client's loop keeps what its connections did, for
  /// recordings (``LongLinkError/recording``): 0 for none, or 16,384 to 1,073,741,824. Default 64
  /// KiB. It has an effect only with the trait `Operations`.
  ///
  /// If several clients or servers use one loop, the first one decides.
  public var recorderBytes = 65_536
  /// Whether recordings have the bodies of messages, which may be personal. Default false: they
  /// have the frames' headers, metadata and control messages, without credentials.
  public var recordsBodies = false
  /// The client's logger. Bodies are never logged.
  ///
  /// Default: a logger with the label `longlink.client`, in a simulation limited to warnings and
  /// errors.
  public var logger: Logger {
    get { configuredLogger.logger }
    set { configuredLogger.logger = newValue }
  }
  private var configuredLogger = ConfiguredLogger(label: "longlink.client")
  /// The observers of exchanges and links; nil if there are none.
  package var observers: Observers?
  /// Whether the level of the logger changes later.
  package var changesLogLevel = false
  /// The observers of this side's requests, and their interceptors; nil if there are neither.
  var requestObservers: Observers? {
    if interceptors.isEmpty { return observers }
    return Observers(observers?.all ?? [], interceptors: interceptors)
  }

  /// Makes a configuration for one or more servers, in order of preference, as with `.inOrder`.
  ///
  /// They are not balanced: each client uses the first one that works. To spread clients over
  /// several servers, write `servers: .balanced([…])`.
  public init(servers: [Endpoint]) {
    self.servers = .inOrder(servers)
  }

  /// Makes a configuration for servers `.inOrder`, `.balanced`, or with priorities and weights.
  public init(servers: [ServerEntry]) {
    self.servers = servers
  }

  /// Makes a configuration for several environments. The client begins with `initial`, which must
  /// be one of them: otherwise the list of servers is empty, which `validate()` rejects.
  public init(environments: [String: [ServerEntry]], initial: String) {
    servers = environments[initial] ?? []
    self.environments = environments
  }

  /// Makes a configuration without servers, for a client that uses only these ways of short links.
  /// If the long link is among them, set `servers`, too.
  public init(ways: [Way]) {
    servers = []
    self.ways = ways
  }

  /// Checks the configuration. Throws `invalidConfiguration`, with the field's name, if a value is
  /// out of range. Making a client does the same.
  public func validate() throws(LongLinkError) {
    try validateWays()
    if hasLongLink { try ServerEntry.validate(servers, field: "servers") }
    for name in environments.keys.sorted() {
      try ServerEntry.validate(environments[name] ?? [], field: "environments[\(name)]")
    }
    try validateConnection(.client)
    try positive(timeouts.connect, "timeouts.connect")
    try positive(timeouts.lingering, "timeouts.lingering")
    try validateReconnect()
    try validateAdaptiveHeartbeat()
    try atLeast(0, limits.maxWaiting, "limits.maxWaiting")
    try atLeast(0, limits.maxWaitingBytes, "limits.maxWaitingBytes")
    try retry.validate(field: "retry")
  }

  /// Returns the configuration with the settings that depend on the client's loop.
  func settled(on loop: EventLoop) -> ClientConfiguration {
    var configuration = self
    configuration.configuredLogger.settle(on: loop)
    return configuration
  }

  private func validateWays() throws(LongLinkError) {
    guard !ways.isEmpty else { throw .configuration("ways", "there is no way") }
    for (index, way) in ways.enumerated() where index > 0 && way.opener == nil {
      throw .configuration("ways", "the long link is not the first, or there twice")
    }
    guard dialect.source == nil || ways.allSatisfy({ $0.opener == nil }) else {
      throw .configuration("ways", "short links carry the native protocol only")
    }
  }

  /// Whether the long link is among the ways.
  var hasLongLink: Bool { ways.contains { $0.opener == nil } }

  /// The servers of the long link; a placeholder, which is never used, if there is none.
  var connectedServers: [ServerEntry] {
    servers.isEmpty ? [ServerEntry(.host("localhost", port: 1))] : servers
  }

  private func validateAdaptiveHeartbeat() throws(LongLinkError) {
    guard let adaptiveHeartbeat else { return }
    try adaptiveHeartbeat.validate(within: dialect.heartbeat(heartbeat))
    if let facts = dialect.facts(.client), !facts.pingsAreAnswered {
      throw .configuration(
        "adaptHeartbeat", "\(facts.name) does not answer a client's pings")
    }
  }

  private func validateReconnect() throws(LongLinkError) {
    try positive(reconnect.afterRefused, "reconnect.afterRefused")
    try notNegative(reconnect.afterClose, "reconnect.afterClose")
    try notNegative(reconnect.afterLostHeartbeat, "reconnect.afterLostHeartbeat")
    try notNegative(reconnect.longestHint, "reconnect.longestHint")
    if reconnect.cap < reconnect.afterRefused {
      throw .configuration("reconnect.cap", "it is below reconnect.afterRefused")
    }
    try positive(reconnect.coolDown, "reconnect.coolDown")
    try positive(reconnect.preferredRetry, "reconnect.preferredRetry")
    if reconnect.longestCoolDown < reconnect.coolDown {
      throw .configuration("reconnect.longestCoolDown", "it is below reconnect.coolDown")
    }
    if let ratio = reconnect.errorRatio { try validate(ratio, "reconnect.errorRatio") }
  }

  private func validate(_ ratio: ErrorRatio, _ field: String) throws(LongLinkError) {
    try atLeast(1, ratio.minimumRequests, "\(field).minimumRequests")
    if !(ratio.minimumRequests...100_000).contains(ratio.window) {
      throw .configuration(
        "\(field).window", "\(ratio.window) is not between minimumRequests and 100,000")
    }
    if !(ratio.ratio > 0 && ratio.ratio <= 1) {
      throw .configuration("\(field).ratio", "\(ratio.ratio) is not between 0 and 1")
    }
  }

  /// The bounds of the requests.
  var requestLimits: RequestLimits {
    RequestLimits(
      maxWaiting: limits.maxWaiting, maxWaitingBytes: limits.maxWaitingBytes, retry: retry,
      longestHint: reconnect.longestHint)
  }

  /// Makes the settings of a connection. Throws if a dialect's token does not fit.
  func connectionSettings() throws(DialectTokenError) -> ConnectionSettings {
    var settings = settings(
      of: .client, dialect: try dialect.source?.framing(.client, maxBody: limits.maxBody))
    settings.handshakeTimeout = timeouts.connect.clampedNanoseconds
    return settings
  }
}

extension ClientConfiguration: ConnectionConfiguration {}
extension ClientConfiguration.Limits: ConnectionLimits {}
extension ClientConfiguration.Timeouts: ConnectionTimeouts {}
