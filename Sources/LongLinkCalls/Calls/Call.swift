// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore
internal import LongLinkDriver

/// A call that can be made alone, in a group, or for a page of a list.
public struct Call<Reply: Sendable>: Sendable {
  /// The message type of the request.
  public let type: MessageType
  /// The name of the method.
  let method: MethodName
  /// The policy of this call, which overrides all others.
  public var policy: CallPolicy
  /// The policy of the method.
  let methodPolicy: CallPolicy
  let body: any BodyEncodable & Sendable
  var key: [UInt8]?
  /// The carrier that makes the call; nil for the client's link.
  var carrier: (any CallCarrier)?
  let decode: @Sendable ([UInt8]) throws(BodyError) -> Reply

  init(
    type: MessageType, method: MethodName, body: any BodyEncodable & Sendable, policy: CallPolicy,
    methodPolicy: CallPolicy, key: [UInt8]?, carrier: (any CallCarrier)? = nil,
    decode: @escaping @Sendable ([UInt8]) throws(BodyError) -> Reply
  ) {
    self.type = type
    self.method = method
    self.body = body
    self.policy = policy
    self.methodPolicy = methodPolicy
    self.key = key
    self.carrier = carrier
    self.decode = decode
  }

  /// Returns the call with a key that replaces its body in de-duplication and in the cache.
  ///
  /// Use it for requests whose bodies differ in insignificant parts, such as a time.
  public func keyed(by key: [UInt8]) -> Call {
    var call = self
    call.key = key
    return call
  }

  /// Returns the call with its reply transformed by a function.
  ///
  /// The function may be called on any thread. If it throws, the call fails with `decodingFailed`.
  public func map<Value: Sendable>(
    _ transform: @escaping @Sendable (Reply) throws(BodyError) -> Value
  ) -> Call<Value> {
    Call<Value>(
      type: type, method: method, body: body, policy: policy, methodPolicy: methodPolicy,
      key: key, carrier: carrier
    ) { [decode] (bytes) throws(BodyError) in
      try transform(try decode(bytes))
    }
  }
}

extension Call {
  /// Makes a call that a carrier makes, instead of the client's link.
  ///
  /// `key` stands for everything that the other side sees of the call, in de-duplication and in the
  /// cache.
  package init(
    type: MessageType, service: String, policy: CallPolicy, methodPolicy: CallPolicy,
    key: [UInt8], carrier: any CallCarrier,
    decode: @escaping @Sendable ([UInt8]) throws(BodyError) -> Reply
  ) {
    self.init(
      type: type, method: MethodName("", of: service), body: [UInt8](), policy: policy,
      methodPolicy: methodPolicy, key: key, carrier: carrier, decode: decode)
  }

  /// The operation of the call, for errors.
  var operation: LongLinkError.Operation {
    carrier.map { .exchange($0.operation, type: type) } ?? .request(type)
  }
}
