// SPDX-License-Identifier: Apache-2.0

#if Operations
public import LongLink
internal import LongLinkCore
internal import LongLinkDriver
public import LongLinkServer
public import Tracing

/// Traces of requests, through swift-distributed-tracing.
///
/// ```swift
/// configuration.observe(with: LongLinkTracing())
/// ```
///
/// Each request that this side makes has one span of the kind `client`, over all its attempts, each
/// of which is an event. The span's context travels in the request's metadata, under the tracer's
/// own keys, such as `traceparent` and `tracestate`. Each request of the peer has a span of the
/// kind `server`, whose parent is the span that its metadata names. The handler runs with the
/// span's context, so that the handler's own spans and log lines belong to it.
///
/// The span of a stream covers only its opening: it ends when the request was sent, or is given to
/// its handler. So a subscription of months is no span of months.
public struct LongLinkTracing: Sendable {
  let tracer: any Tracer

  /// Makes traces; you can use one value for several clients and servers.
  ///
  /// - Parameter tracer: The tracer that makes the spans. Default nil: that of
  ///   `InstrumentationSystem`, which the program has to bootstrap before.
  public init(tracer: (any Tracer)? = nil) {
    self.tracer = tracer ?? InstrumentationSystem.tracer
  }
}

extension ClientConfiguration {
  /// Traces the requests of clients with this configuration, in both directions.
  public mutating func observe(with tracing: LongLinkTracing) {
    observers = Observers((observers?.all ?? []) + [ExchangeTraces(tracing.tracer)])
  }
}

extension ServerConfiguration {
  /// Traces the requests of servers with this configuration, in both directions.
  public mutating func observe(with tracing: LongLinkTracing) {
    observers = Observers((observers?.all ?? []) + [ExchangeTraces(tracing.tracer)])
  }
}

/// Makes a span of each exchange.
struct ExchangeTraces: Observer {
  /// The span of an exchange, and whether it is that of a stream.
  private struct OwnSpan: Sendable {
    let span: any Span
  }

  private let tracer: any Tracer

  init(_ tracer: any Tracer) {
    self.tracer = tracer
  }

  // MARK: Spans

  func begins(_ exchange: ExchangeRecord, metadata: inout [String: String]) {
    let span = start(exchange, .client, in: ServiceContext.current ?? .topLevel)
    tracer.inject(span.context, into: &metadata, using: MetadataInjector())
  }

  func arrived(_ exchange: ExchangeRecord, metadata: [String: String]) {
    var context = ServiceContext.topLevel
    if !metadata.isEmpty {
      tracer.extract(metadata, into: &context, using: MetadataExtractor())
    }
    _ = start(exchange, .server, in: context)
  }

  private func start(
    _ exchange: ExchangeRecord, _ kind: SpanKind, in context: ServiceContext
  ) -> any Span {
    let method = exchange.method ?? "_OTHER"
    let span = tracer.startAnySpan(method, context: context, ofKind: kind)
    span.updateAttributes { attributes in
      attributes["rpc.system.name"] = "longlink"
      attributes["rpc.method"] = method
    }
    exchange.attach(OwnSpan(span: span))
    return span
  }

  func handedOver(_ exchange: ExchangeRecord) {
    guard let span = exchange.attachment(of: OwnSpan.self)?.span else { return }
    if exchange.direction == .outbound {
      span.addEvent(
        SpanEvent(
          name: "longlink.attempt",
          attributes: [
            "longlink.attempt": .int64(
              Int64(exchange.attempts))
          ]))
    }
    // A later attempt of a stream, and its end, are no part of its opening.
    if exchange.isStream, exchange.attempts == 1 { span.end() }
  }

  func ended(_ exchange: ExchangeRecord) {
    guard let span = exchange.attachment(of: OwnSpan.self)?.span,
      let ending = exchange.ending, !exchange.isStream || exchange.attempts == 0
    else { return }
    let error = CallError(ending)
    span.updateAttributes { attributes in
      if exchange.direction == .outbound {
        attributes["longlink.delivery"] = exchange.delivery.rawValue
      }
      if let error { attributes["error.type"] = error.label }
    }
    if error != nil { span.setStatus(SpanStatus(code: .error)) }
    span.end()
  }

  // MARK: Handlers

  func withScope(
    of exchange: ExchangeRecord, _ handler: () throws -> AnyBody
  ) throws -> AnyBody {
    guard let span = exchange.attachment(of: OwnSpan.self)?.span else { return try handler() }
    return try ServiceContext.$current.withValue(span.context, operation: handler)
  }

  func withScope(
    of exchange: ExchangeRecord, _ handler: () async throws -> AnyBody
  ) async throws -> AnyBody {
    guard let span = exchange.attachment(of: OwnSpan.self)?.span else { return try await handler() }
    return try await ServiceContext.$current.withValue(span.context, operation: handler)
  }
}

private struct MetadataInjector: Injector {
  func inject(_ value: String, forKey key: String, into carrier: inout [String: String]) {
    carrier[key] = value
  }
}

/// Takes what a peer says of a trace: short texts of printable ASCII, as `traceparent` and
/// `tracestate` are. Anything else is ignored.
private struct MetadataExtractor: Extractor {
  /// The most bytes of a `tracestate` that a tracer should propagate, by W3C's Trace Context.
  private static let longest = 512

  func extract(key: String, from carrier: [String: String]) -> String? {
    guard let value = carrier[key], (1...Self.longest).contains(value.utf8.count),
      value.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
    else { return nil }
    return value
  }
}
#endif
