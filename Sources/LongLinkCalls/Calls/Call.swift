// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// A call that can be made: alone, in a group, or for a page of a list. It is a value.
public struct Call<Reply: Sendable>: Sendable {
  /// What the body of the request carries.
  public let type: MessageType
  /// The service that its method belongs to.
  let service: String
  /// What the call itself says of how it is made.
  public var policy: CallPolicy
  /// What its method says.
  let methodPolicy: CallPolicy
  let body: any BodyEncodable & Sendable
  var key: [UInt8]?
  let decode: @Sendable ([UInt8]) throws(BodyError) -> Reply

  init(
    type: MessageType, service: String, body: any BodyEncodable & Sendable, policy: CallPolicy,
    methodPolicy: CallPolicy, key: [UInt8]?,
    decode: @escaping @Sendable ([UInt8]) throws(BodyError) -> Reply
  ) {
    self.type = type
    self.service = service
    self.body = body
    self.policy = policy
    self.methodPolicy = methodPolicy
    self.key = key
    self.decode = decode
  }

  /// The call, known by a key of the caller's in place of its body when it shares an exchange and
  /// when its answer is cached.
  ///
  /// For requests whose bodies differ in what does not matter, such as a time.
  public func keyed(by key: [UInt8]) -> Call {
    var call = self
    call.key = key
    return call
  }

  /// The call, which gives what a function makes of the reply.
  ///
  /// The function may be called on any thread; what it throws counts as a reply that cannot be
  /// decoded.
  public func map<Value: Sendable>(
    _ transform: @escaping @Sendable (Reply) throws(BodyError) -> Value
  ) -> Call<Value> {
    Call<Value>(
      type: type, service: service, body: body, policy: policy, methodPolicy: methodPolicy, key: key
    ) { [decode] (bytes) throws(BodyError) in
      try transform(try decode(bytes))
    }
  }
}
