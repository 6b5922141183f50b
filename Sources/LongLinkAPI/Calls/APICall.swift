public import LongLinkCore

/// A call that can be made: alone, in a group, or for a page of a list. It is a value.
public struct APICall<Reply: Sendable>: Sendable {
  /// What the body of the request carries.
  public let type: MessageType
  /// How the request is made.
  public var policy: RequestPolicy
  let body: any BodyEncodable & Sendable
  var key: [UInt8]?
  let errors: [any ApplicationError.Type]
  let decode: @Sendable ([UInt8]) throws(BodyError) -> Reply

  init(
    type: MessageType, body: any BodyEncodable & Sendable, policy: RequestPolicy, key: [UInt8]?,
    errors: [any ApplicationError.Type],
    decode: @escaping @Sendable ([UInt8]) throws(BodyError) -> Reply
  ) {
    self.type = type
    self.body = body
    self.policy = policy
    self.key = key
    self.errors = errors
    self.decode = decode
  }

  /// The call, known by a key of the caller's in place of its body when it shares an exchange and
  /// when its answer is cached.
  ///
  /// For requests whose bodies differ in what does not matter, such as a time.
  public func keyed(by key: [UInt8]) -> APICall {
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
  ) -> APICall<Value> {
    APICall<Value>(type: type, body: body, policy: policy, key: key, errors: errors) {
      [decode] (bytes) throws(BodyError) in
      try transform(try decode(bytes))
    }
  }
}
