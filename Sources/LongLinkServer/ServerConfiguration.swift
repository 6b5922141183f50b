// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore
public import Logging

/// What a server is to do, and what it allows. Every field but the addresses has a default that
/// suits the public internet.
public struct ServerConfiguration: Sendable {
  /// Where to listen: literal addresses or names, and port 0 for a free one; or Unix sockets.
  public var listen: [Endpoint]
  /// Which protocol is spoken. Default: the native one.
  ///
  /// A dialect's own heartbeat then holds in place of `heartbeat.interval` and `heartbeat.timeout`,
  /// and nobody has to send a first frame.
  public var dialect = Dialect.native
  /// How many event loops the server makes for itself, when it is given none. Default 1.
  public var loops = 1
  /// The most connections at once; further connections are closed and counted. Default 10,000.
  public var maxConnections = 10_000
  /// The most connections at once from one IPv4 address, or from one IPv6 network of 64 bits;
  /// further connections are closed and counted. Default 1,000.
  ///
  /// Loopback addresses and Unix sockets do not count unless `limitsLoopback` says so. Behind a
  /// proxy all clients have its address: raise the limit to `maxConnections` there.
  public var maxConnectionsPerAddress = 1_000
  /// Whether `maxConnectionsPerAddress` holds for loopback addresses too. Default: no.
  public var limitsLoopback = false
  /// The most requests of one connection at once; further ones are refused with 429. A request
  /// counts until it is answered and its handler has returned, even where it was cancelled before
  /// that. Default 1,024.
  public var maxInFlight = 1_024
  /// The largest body that is accepted, in bytes. Default 16 MiB.
  public var maxBody = 16_777_216
  /// The most bytes that one connection's unfinished messages, and the bodies of its requests whose
  /// handlers have not returned, may hold together; further requests are refused with 429. At least
  /// `maxBody`. Default 32 MiB.
  public var maxRequestBytes = 33_554_432
  /// The most bytes that all connections together may make the server hold: what was read and is
  /// unfinished, requests (their bodies and 4 KiB each) whose handlers have not returned, and what
  /// waits to be written. At least twice `maxBody`, and four times in a dialect with delimiters.
  /// Default 64 MiB.
  ///
  /// From three eighths of it on, connections are read in smaller pieces, and those whose clients
  /// leave answers unread are not read. Past three quarters the connections that hold the most are
  /// ended, for `memoryLimit`, and their clients are told 429. The last quarter is for handlers
  /// that go on after their requests were given up. Where those hold more than that, open
  /// connections may hold the rest, but always a quarter of the limit. Past the limit requests are
  /// refused with 429, but for those of connections with few: a quarter more is kept for them.
  public var memoryLimit = 67_108_864
  /// The most bytes that may wait for a connection which does not read: the answer, push or
  /// broadcast that comes when more wait already drops it. From half of it on, and earlier while
  /// memory is scarce, the connection's requests are not read. At least `maxBody` and
  /// `waterMarks.high`. Default 64 MiB.
  public var maxUnreadOutput = 67_108_864
  /// Where pushes and the server's own requests to a connection begin to wait, and where they go
  /// on. Defaults: 1 MiB, 512 KiB, and 32 MiB of large bodies.
  public var waterMarks = WaterMarks()
  /// How long a new connection may take for its first frame. Default 10 s.
  public var firstFrameTimeout: Duration = .seconds(10)
  /// How long one frame may take from its first byte to its last. Default 30 s.
  public var frameTimeout: Duration = .seconds(30)
  /// How long a message in fragments may wait for its next one: then a request is refused with 408,
  /// and the connection of a push is closed. Default 60 s.
  public var messageTimeout: Duration = .seconds(60)
  /// How a dead client is found; the shorter of this and the client's is used.
  public var heartbeat = Heartbeat()
  /// How long the server's own requests may take where they say nothing. Default 15 s.
  public var timeout: Duration = .seconds(15)
  /// Over how long clients are asked to spread when they come back after a drain. Default 5 s.
  public var drainSpread: Duration = .seconds(5)
  /// How long clients are asked to stay away at least, before that. Default 0 s.
  public var drainRetryAfter: Duration = .zero
  /// Servers that clients are told to try instead, best first; at most 8, by host and port.
  /// Default: none.
  public var drainAlternatives: [Endpoint] = []
  /// The name that clients are told. Default: none.
  public var name = ""
  /// Where the server logs. Bodies are never logged.
  ///
  /// Default: a logger with the label `longlink.server`. In a simulation it logs warnings alone.
  public var logger: Logger {
    get { configuredLogger.logger }
    set { configuredLogger.logger = newValue }
  }
  private var configuredLogger = ConfiguredLogger(label: "longlink.server")

  /// Makes a configuration that listens on one or more addresses.
  public init(listen: [Endpoint]) {
    self.listen = listen
  }

  /// This configuration, with what depends on the server's loops; none where it makes its own.
  func settled(on loops: [EventLoop]) -> ServerConfiguration {
    var configuration = self
    if let loop = loops.first { configuration.configuredLogger.settle(on: loop) }
    return configuration
  }

  /// Throws `invalidConfiguration`, naming the field, when the configuration cannot work.
  public func validate() throws(LongLinkError) {
    if listen.isEmpty { throw .configuration("listen", "there is no address") }
    for (index, endpoint) in listen.enumerated() {
      try endpoint.validate(field: "listen[\(index)]", by: .server)
    }
    try atLeast(1, loops, "loops")
    try atLeast(1, maxConnections, "maxConnections")
    try atLeast(1, maxConnectionsPerAddress, "maxConnectionsPerAddress")
    try atLeast(1, maxInFlight, "maxInFlight")
    try atLeast(1, maxBody, "maxBody")
    if maxBody > 1 << 31 { throw .configuration("maxBody", "it is above 2,147,483,648") }
    try atLeast(maxBody, maxRequestBytes, "maxRequestBytes")
    // What waits for its delimiter can take twice its size.
    let leastBodies = dialect.facts(.server)?.isDelimited == true ? 4 : 2
    try atLeast(leastBodies * maxBody, memoryLimit, "memoryLimit")
    try waterMarks.validate(field: "waterMarks")
    try atLeast(max(maxBody, waterMarks.high), maxUnreadOutput, "maxUnreadOutput")
    try positive(firstFrameTimeout, "firstFrameTimeout")
    try positive(frameTimeout, "frameTimeout")
    try positive(messageTimeout, "messageTimeout")
    try positive(timeout, "timeout")
    if drainSpread < .zero { throw .configuration("drainSpread", "it is negative") }
    if drainRetryAfter < .zero { throw .configuration("drainRetryAfter", "it is negative") }
    if drainAlternatives.count > Wire.alternativesLimit {
      throw .configuration("drainAlternatives", "there are more than \(Wire.alternativesLimit)")
    }
    for (index, endpoint) in drainAlternatives.enumerated()
    where endpoint.alternativeText == nil {
      throw .configuration("drainAlternatives[\(index)]", "\(endpoint) cannot be told to clients")
    }
    try heartbeat.validate(field: "heartbeat")
    try dialect.validate(.server, field: "dialect")
    if name.utf8.contains(0) { throw .configuration("name", "it contains a NUL") }
    if name.utf8.count > 1024 { throw .configuration("name", "it is longer than 1,024 bytes") }
  }

  private func atLeast(_ least: Int, _ value: Int, _ field: String) throws(LongLinkError) {
    if value < least { throw .configuration(field, "\(value) is below \(least)") }
  }

  private func positive(_ duration: Duration, _ field: String) throws(LongLinkError) {
    if duration <= .zero { throw .configuration(field, "\(duration) is not above zero") }
  }

  /// What each connection is told.
  var connectionSettings: ConnectionSettings {
    var settings = ConnectionSettings(role: .server)
    let heartbeat = dialect.heartbeat(heartbeat)
    settings.dialect = try? dialect.source?.sharedFraming(.server, maxBody: maxBody)
    settings.maxBody = maxBody
    settings.maxInFlight = maxInFlight
    settings.maxRequestBytes = maxRequestBytes
    settings.maxUnread = maxUnreadOutput
    settings.waterMarks = waterMarks.limited(by: maxUnreadOutput)
    settings.heartbeatInterval = heartbeat.interval.clampedNanoseconds
    settings.heartbeatTimeout = heartbeat.timeout.clampedNanoseconds
    settings.missedDeadlines = heartbeat.missedDeadlines
    settings.handshakeTimeout = firstFrameTimeout.clampedNanoseconds
    settings.frameTimeout = frameTimeout.clampedNanoseconds
    settings.messageTimeout = messageTimeout.clampedNanoseconds
    settings.writingTimeout = (heartbeat.interval + heartbeat.timeout).clampedNanoseconds
    settings.name = name
    return settings
  }
}
