// SPDX-License-Identifier: Apache-2.0

/// One method of a service: its message type, its request and reply types, and its request options.
///
/// protoc-gen-longlink writes one for each rpc. Clients and connections send its requests, servers
/// route them, and a `CallClient` of LongLinkCalls makes calls with it.
///
/// A method whose request or response has items has ``Streamed`` in the place of that type:
/// `RPCMethod<Query, Streamed<Price>>` takes a message and returns a stream of messages. The body
/// of a request before its items, and that of a response after its items, is empty.
public struct RPCMethod<Request: Sendable, Reply: Sendable>: Sendable {
  /// The message type of the method's requests.
  public let type: MessageType
  /// The readable name of the method, such as `Say`.
  public let name: String
  /// The full name of the method's service, such as `chat.Chat`; empty for a method without a
  /// service.
  public let service: String
  /// Whether the method only reads, so that identical requests can share one response.
  public let isReadOnly: Bool
  /// The options of the method's requests; a call's own options override them.
  ///
  /// The `retry` of a method whose requests can safely run twice is ``RetryMode/idempotent``; that
  /// is also the default if it only reads. For a method with items, only `timeout`,
  /// `waitsForConnection`, `priority` and `metadata` apply.
  public var options: RequestOptions

  /// Makes a method. One that only reads gets ``RetryMode/idempotent``, unless `options` sets
  /// `retry`.
  public init(
    _ type: MessageType, _ name: String = "", of service: String = "",
    isReadOnly: Bool = false, options: RequestOptions = RequestOptions()
  ) {
    self.type = type
    self.name = name
    self.service = service
    self.isReadOnly = isReadOnly
    self.options = options
    if options.retry == nil, isReadOnly { self.options.retry = .idempotent }
  }

  /// Returns the method with the options that it does not set taken from `wider`.
  public func over(_ wider: RequestOptions) -> RPCMethod {
    var method = self
    method.options = options.over(wider)
    return method
  }

  /// The method's name for errors and logs.
  @usableFromInline package var fullName: MethodName { MethodName(name, of: service) }
}

/// The full name of a method as gRPC writes it, such as `chat.Chat/Say`. It is put together where
/// it is shown, so that only errors and log lines pay for it.
@usableFromInline package struct MethodName: Sendable {
  package let name: String
  package let service: String

  /// The name of a request without a method.
  @usableFromInline package static let none = MethodName("")

  package init(_ name: String, of service: String = "") {
    self.name = name
    self.service = service
  }

  /// The name as text; empty for a method without a name.
  package var text: String { name.isEmpty || service.isEmpty ? name : "\(service)/\(name)" }
}

/// A marker in an ``RPCMethod``: its request or response is a stream of items of this type. The
/// marker has no values.
public enum Streamed<Item: Sendable>: Sendable {}
