// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkDriver
internal import LongLinkServer

extension ServerConfiguration {
  /// All keys of a server.
  static var keys: [ConfigurationKey<ServerConfiguration>] {
    [.list("listen", \.listen, Endpoint.form) { Endpoint(configured: $0) }]
      + ownKeys + limitKeys + addressKeys + ConfigurationKey<Self>.heartbeat
      + ConfigurationKey<Self>.recorder
  }

  private static var ownKeys: [ConfigurationKey<ServerConfiguration>] {
    [
      .logLevel,
      .name,
      .integer("loops", \.loops, from: 1),
      .seconds("identity.timeout", \.identity.timeout, .positive),
      .integer("identity.maxAuthentications", \.identity.maxAuthentications, from: 1),
      .seconds("identity.credentialGrace", \.identity.credentialGrace, .notNegative),
      .seconds("identity.linger", \.identity.linger, .notNegative),
      .seconds("timeouts.request", \.timeouts.request, .positive),
      .seconds("timeouts.firstFrame", \.timeouts.firstFrame, .positive).live,
      .seconds("timeouts.frame", \.timeouts.frame, .positive).live,
      .seconds("timeouts.message", \.timeouts.message, .positive).live,
      .seconds("drain.spread", \.drain.spread, .notNegative),
      .seconds("drain.retryAfter", \.drain.retryAfter, .notNegative),
      .list("drain.alternatives", \.drain.alternatives, "`host:port`; at most 8") {
        Endpoint(configured: $0)
      },
    ]
  }

  private static var limitKeys: [ConfigurationKey<ServerConfiguration>] {
    [
      .integer("limits.maxConnections", \.limits.maxConnections, from: 1).live,
      .integer("limits.maxHandshakes", \.limits.maxHandshakes, from: 1).live,
      .integer("limits.maxInFlight", \.limits.maxInFlight, from: 1).live,
      .limit(
        "limits.maxCancelsPerSecond", \.limits.maxCancelsPerSecond, from: 1, to: 1_000_000,
        unit: "requests per second"
      ).live,
      .limit(
        "limits.maxBytesPerSecond", \.limits.maxBytesPerSecond, from: 16_384,
        unit: "bytes per second"
      ).live,
      .limit(
        "limits.maxFramesPerSecond", \.limits.maxFramesPerSecond, from: 100,
        unit: "frames per second"
      ).live,
      .integer("limits.maxBody", \.limits.maxBody, from: 1, to: 2_147_483_648, unit: "bytes").live,
      .integer("limits.maxRequestBytes", \.limits.maxRequestBytes, from: 1, unit: "bytes").live,
      .integer("limits.memoryLimit", \.limits.memoryLimit, from: 2, unit: "bytes"),
      .integer("limits.maxUnreadOutput", \.limits.maxUnreadOutput, from: 1, unit: "bytes").live,
    ] + ConfigurationKey<Self>.waterMarks
      + ConfigurationKey<Self>.streamWindows.map(\.live)
  }

  private static var addressKeys: [ConfigurationKey<ServerConfiguration>] {
    let form = "addresses, or networks such as `10.0.0.0/8`"
    return [
      .list("addresses.allowed", \.addresses.allowed, form) { AddressRange($0) }.live,
      .list("addresses.denied", \.addresses.denied, form) { AddressRange($0) }.live,
      .list("addresses.proxies", \.addresses.proxies, form) { AddressRange($0) }.live,
      .integer("addresses.maxConnections", \.addresses.maxConnections, from: 1).live,
      .integer(
        "addresses.maxConnectionRate", \.addresses.maxConnectionRate, from: 1, to: 1_000_000,
        unit: "connections per second"
      ).live,
      .integer(
        "addresses.maxShortLinkRate", \.addresses.maxShortLinkRate, from: 1, to: 1_000_000,
        unit: "short links per second"
      ).live,
      .flag("addresses.limitsLoopback", \.addresses.limitsLoopback).live,
    ]
  }
}
#endif
