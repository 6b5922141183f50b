// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore
public import LongLinkTransport
public import Logging

/// The configuration of a server. Every field but `listen` has a default that suits the public
/// internet.
public struct ServerConfiguration: Sendable {
  /// The endpoints to listen on, at least one: hosts, as literal addresses or names, with port 0
  /// for a free port; or Unix sockets.
  public var listen: [Endpoint]
  /// The wire protocol. Default: the native one.
  ///
  /// A dialect's heartbeat times replace `heartbeat.interval` and `heartbeat.timeout`, and clients
  /// need not send a first frame.
  public var dialect = Dialect.native
  /// The security of the connections of clients: `.tls(…)`, with the product LongLinkTLS. Default
  /// nil: connections are not encrypted.
  ///
  /// The connections of an HTTP gateway are secured by the server in front of it.
  public var security: ServerSecurity?
  /// How the server finds out who its clients are. Default: it accepts all, without a principal.
  public var identity = Identity()
  /// Limits on what the server accepts from each connection, and from all connections together.
  /// Each limit has a default.
  public var limits = Limits()
  /// The addresses that may connect, and the most that each may do. Default: all, within limits.
  public var addresses = Addresses()
  /// The most time for frames, messages and requests. Each has a default.
  public var timeouts = Timeouts()
  /// What clients are told to do when the server drains. Default: to come back within 5 s.
  public var drain = Drain()
  /// The number of event loops that the server makes if it is given none; at least 1. Default 1.
  public var loops = 1
  /// How a dead client is detected. Default: by a ping after 30 s of silence, with 10 s for any
  /// answer. For the interval and for the timeout, the shorter of the client's and the server's
  /// values applies.
  public var heartbeat = Heartbeat()
  /// The server's name in the handshake: at most 1,024 bytes, without NUL. Default: none.
  public var name = ""
  /// The most bytes of the ring in which each loop keeps what its connections did, for recordings:
  /// 0 for none, or 16,384 to 1,073,741,824. Default 4 MiB. It has an effect only with the trait
  /// `Operations`.
  ///
  /// If several clients or servers use one loop, the first one decides.
  public var recorderBytes = 4_194_304
  /// Whether recordings have the bodies of messages, which may be personal. Default false: they
  /// have the frames' headers, metadata and control messages, without credentials.
  public var recordsBodies = false
  /// The server's logger. Bodies are never logged.
  ///
  /// Default: a logger with the label `longlink.server`, in a simulation limited to warnings and
  /// errors.
  public var logger: Logger {
    get { configuredLogger.logger }
    set { configuredLogger.logger = newValue }
  }
  private var configuredLogger = ConfiguredLogger(label: "longlink.server")
  /// What keeps the records of requests that run once; nil if nothing does.
  package var onceProvider: (any OnceProvider)?
  /// The observers of exchanges and links; nil if there are none.
  package var observers: Observers?
  /// Whether the level of the logger changes later.
  package var changesLogLevel = false

  /// Makes a configuration that listens on one or more endpoints.
  public init(listen: [Endpoint]) {
    self.listen = listen
  }

  /// Returns the configuration with the settings that depend on the given loops. Without loops, the
  /// server makes its own, and nothing changes.
  func settled(on loops: [EventLoop]) -> ServerConfiguration {
    var configuration = self
    if let loop = loops.first { configuration.configuredLogger.settle(on: loop) }
    return configuration
  }

  /// Throws `invalidConfiguration`, with the field's name, if a value is out of range or does not
  /// fit the others. The server's initializers call it.
  public func validate() throws(LongLinkError) {
    if listen.isEmpty { throw .configuration("listen", "there is no address") }
    for (index, endpoint) in listen.enumerated() {
      try endpoint.validate(field: "listen[\(index)]", by: .server)
    }
    try atLeast(1, loops, "loops")
    if onceProvider != nil, dialect.facts(.server) != nil {
      throw .configuration("once", "a dialect has no requests that run once")
    }
    try onceProvider?.validate()
    try atLeast(1, limits.maxConnections, "limits.maxConnections")
    try validateLimits()
    try validateConnection(.server)
    // A packet that waits for its delimiter can take twice its size.
    let leastBodies = dialect.facts(.server)?.isDelimited == true ? 4 : 2
    try atLeast(leastBodies * limits.maxBody, limits.memoryLimit, "limits.memoryLimit")
    try atLeast(limits.maxBody, limits.maxUnreadOutput, "limits.maxUnreadOutput")
    try positive(timeouts.firstFrame, "timeouts.firstFrame")
    try positive(timeouts.message, "timeouts.message")
    try positive(identity.timeout, "identity.timeout")
    try atLeast(1, identity.maxAuthentications, "identity.maxAuthentications")
    try notNegative(identity.credentialGrace, "identity.credentialGrace")
    try notNegative(identity.linger, "identity.linger")
    try notNegative(drain.spread, "drain.spread")
    try notNegative(drain.retryAfter, "drain.retryAfter")
    if drain.alternatives.count > Wire.alternativesLimit {
      throw .configuration(
        "drain.alternatives", "there are more than \(Wire.alternativesLimit) servers")
    }
    for (index, endpoint) in drain.alternatives.enumerated()
    where endpoint.alternativeText == nil {
      throw .configuration(
        "drain.alternatives[\(index)]", "\(endpoint) cannot be named in a goaway")
    }
  }

  /// The settings of each connection.
  var connectionSettings: ConnectionSettings {
    var settings = settings(
      of: .server, dialect: try? dialect.source?.sharedFraming(.server, maxBody: limits.maxBody))
    settings.handshakeTimeout = timeouts.firstFrame.clampedNanoseconds
    settings.messageTimeout = timeouts.message.clampedNanoseconds
    settings.cancelRate = cancelRate
    settings.identifies = identity.authenticate != nil
    settings.usesOnce = onceProvider != nil
    return settings
  }
}

extension ServerConfiguration: ConnectionConfiguration {}
extension ServerConfiguration.Limits: ConnectionLimits {}
extension ServerConfiguration.Timeouts: ConnectionTimeouts {}
