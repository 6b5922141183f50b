// SPDX-License-Identifier: Apache-2.0

#if Operations
public import LongLink
public import LongLinkCore
internal import LongLinkDriver
public import LongLinkServer
public import Metrics

/// Metrics of clients and servers, through swift-metrics.
///
/// ```swift
/// let metrics = LongLinkMetrics()
/// configuration.observe(with: metrics)
/// let server = try LongLinkServer(configuration)
/// async let report: Void = metrics.report(server)
/// ```
///
/// The ends of requests and the changes of connections are recorded as they happen, on the loop.
/// Counters, and numbers such as that of waiting pushes, are recorded by `report`. The page of this
/// module lists all metrics. No label has a value that a peer can choose.
public struct LongLinkMetrics: Sendable {
  let factory: any MetricsFactory
  let methods: [MessageType: String]

  /// Makes metrics; you can use one value for several clients and servers.
  ///
  /// - Parameters:
  ///   - factory: The factory that makes the metrics. Default nil: that of `MetricsSystem`, which
  ///     the program has to bootstrap before.
  ///   - methods: The names of methods for message types whose requests have none, because neither
  ///     a generated service nor a route names it. All others share the name `_OTHER`.
  public init(factory: (any MetricsFactory)? = nil, methods: [MessageType: String] = [:]) {
    self.factory = factory ?? MetricsSystem.factory
    self.methods = methods
  }
}

extension ClientConfiguration {
  /// Records the metrics of the requests and connections of clients with this configuration.
  public mutating func observe(with metrics: LongLinkMetrics) {
    observers = Observers((observers?.all ?? []) + [ExchangeMetrics(metrics, .client)])
  }
}

extension ServerConfiguration {
  /// Records the metrics of the requests and connections of servers with this configuration.
  public mutating func observe(with metrics: LongLinkMetrics) {
    observers = Observers((observers?.all ?? []) + [ExchangeMetrics(metrics, .server)])
  }
}
#endif
