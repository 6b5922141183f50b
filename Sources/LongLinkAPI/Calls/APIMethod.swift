public import LongLinkCore

/// What the methods of a service have in common.
public struct APIService: Sendable {
  /// How its requests are made, where a method says nothing.
  public var policy: RequestPolicy
  /// The errors that the application itself has defined for the service, asked in this order.
  public var errors: [any ApplicationError.Type]

  /// Makes a service.
  public init(policy: RequestPolicy = RequestPolicy(), errors: [any ApplicationError.Type] = []) {
    self.policy = policy
    self.errors = errors
  }
}

/// One method of a server: its message type, its messages, and how its requests are made.
public struct APIMethod<Request: BodyEncodable & Sendable, Reply: BodyDecodable & Sendable>:
  Sendable
{
  /// What the bodies of its requests carry.
  public let type: MessageType
  /// The service that it belongs to.
  public let service: APIService
  /// How its requests are made, where a call says nothing.
  public let policy: RequestPolicy

  /// Makes a method.
  public init(
    _ type: MessageType, _ request: Request.Type = Request.self, returning reply: Reply.Type,
    of service: APIService = APIService(), policy: RequestPolicy = RequestPolicy()
  ) {
    self.type = type
    self.service = service
    self.policy = policy
  }

  /// A call of the method, which is made when it is given to an ``APIClient``, each time anew.
  public func callAsFunction(
    _ request: Request, policy: RequestPolicy = RequestPolicy()
  ) -> APICall<Reply> {
    APICall(
      type: type, body: request, policy: policy.over(self.policy).over(service.policy), key: nil,
      errors: service.errors
    ) { (bytes) throws(BodyError) in
      try Reply(copying: bytes)
    }
  }
}
