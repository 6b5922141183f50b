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
/// What has to do with one request or one connection is recorded as it happens, on the loop;
/// counters and what waits are recorded by `report`. The page of this
/// module lists all metrics. No label has a value that a peer can choose.
public struct LongLinkMetrics: Sendable {
  let factory: any MetricsFactory
  let methods: [MessageType: String]

  /// Makes metrics. One value may serve several clients and servers.
  ///
  /// - Parameters:
  ///   - factory: Makes the metrics. Default: that of `MetricsSystem`, which the program has to
  ///     bootstrap before.
  ///   - methods: The names of methods for requests that have none of their own, because neither a
  ///     generated service nor a route says it. All others share the name `_OTHER`.
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
