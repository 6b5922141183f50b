// SPDX-License-Identifier: Apache-2.0

/// One method of a service whose response has items: a message in, a stream of messages out.
///
/// protoc-gen-longlink writes one for each rpc that returns a `stream`. The response that follows
/// the items has an empty body.
public struct ServerStreamingMethod<Request: Sendable, Item: Sendable>: Sendable {
  /// The message type of the method's requests.
  public let type: MessageType
  /// The readable name of the method, such as `Watch`.
  public let name: String
  /// The full name of the method's service, such as `chat.Chat`; empty for a method without a
  /// service.
  public let service: String

  /// Makes a method.
  public init(_ type: MessageType, _ name: String = "", of service: String = "") {
    self.type = type
    self.name = name
    self.service = service
  }
}

/// One method of a service whose request has items: a stream of messages in, a message out.
///
/// protoc-gen-longlink writes one for each rpc that takes a `stream`. The request before the
/// items has an empty body.
public struct ClientStreamingMethod<Item: Sendable, Reply: Sendable>: Sendable {
  /// The message type of the method's requests.
  public let type: MessageType
  /// The readable name of the method, such as `Upload`.
  public let name: String
  /// The full name of the method's service, such as `chat.Chat`; empty for a method without a
  /// service.
  public let service: String

  /// Makes a method.
  public init(_ type: MessageType, _ name: String = "", of service: String = "") {
    self.type = type
    self.name = name
    self.service = service
  }
}

/// One method of a service with items in both directions.
///
/// protoc-gen-longlink writes one for each rpc that takes a `stream` and returns one. The request
/// before the items and the response after them have empty bodies.
public struct BidirectionalMethod<RequestItem: Sendable, ResponseItem: Sendable>: Sendable {
  /// The message type of the method's requests.
  public let type: MessageType
  /// The readable name of the method, such as `Talk`.
  public let name: String
  /// The full name of the method's service, such as `chat.Chat`; empty for a method without a
  /// service.
  public let service: String

  /// Makes a method.
  public init(_ type: MessageType, _ name: String = "", of service: String = "") {
    self.type = type
    self.name = name
    self.service = service
  }
}

/// A method of any form.
package protocol NamedMethod {
  var type: MessageType { get }
  var name: String { get }
  var service: String { get }
}

extension NamedMethod {
  /// The method's full name as gRPC writes it, such as `chat.Chat/Say`; empty for a method without
  /// a name.
  package var fullName: String {
    name.isEmpty || service.isEmpty ? name : "\(service)/\(name)"
  }
}

extension RPCMethod: NamedMethod {}
extension ServerStreamingMethod: NamedMethod {}
extension ClientStreamingMethod: NamedMethod {}
extension BidirectionalMethod: NamedMethod {}
