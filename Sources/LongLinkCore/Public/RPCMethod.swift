// SPDX-License-Identifier: Apache-2.0

/// One method of a service: its message type, its messages, and how its requests are made.
///
/// protoc-gen-longlink writes one for each rpc. Clients and connections send its requests, servers
/// route them, and a `CallClient` of LongLinkCalls makes calls of it.
public struct RPCMethod<Request: Sendable, Reply: Sendable>: Sendable {
  /// What the bodies of its requests carry.
  public let type: MessageType
  /// What the method is called, such as `Say`; for people.
  public let name: String
  /// The full name of its service, such as `chat.Chat`; a method without a service has none.
  public let service: String
  /// Whether its requests may run twice.
  public let idempotency: Idempotency
  /// How its requests are made, where a call says nothing.
  ///
  /// Where `retry` says nothing, requests of a method that may run twice are retried as
  /// ``RetryMode/idempotent``.
  public var options: RequestOptions

  /// Makes a method.
  public init(
    _ type: MessageType, _ name: String = "", of service: String = "",
    idempotency: Idempotency = .unknown, options: RequestOptions = RequestOptions()
  ) {
    self.type = type
    self.name = name
    self.service = service
    self.idempotency = idempotency
    self.options = options
    if options.retry == nil, idempotency != .unknown { self.options.retry = .idempotent }
  }

  /// The method, with the words of wider options where its own have none.
  public func over(_ wider: RequestOptions) -> RPCMethod {
    var method = self
    method.options = options.over(wider)
    return method
  }
}

/// Whether the requests of a method may run twice: the `idempotency_level` of a .proto file.
public enum Idempotency: Hashable, Sendable {
  /// Nobody said so.
  case unknown
  /// To run twice does no more than to run once.
  case idempotent
  /// It only reads, so that identical requests may share one answer.
  case readOnly
}
