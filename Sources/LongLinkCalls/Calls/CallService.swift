// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// What a call client knows of a service beside its methods.
public struct CallService: Sendable {
  /// How its calls are made, where a call and its method say nothing.
  public var policy: CallPolicy
  /// The errors that the application itself has defined for the service, asked in this order.
  public var errors: [any ApplicationError.Type]

  /// Makes a service.
  public init(policy: CallPolicy = CallPolicy(), errors: [any ApplicationError.Type] = []) {
    self.policy = policy
    self.errors = errors
  }
}

extension RPCMethod where Request: BodyEncodable, Reply: BodyDecodable {
  /// A call of the method, which is made when it is given to a ``CallClient``, each time anew.
  public func callAsFunction(
    _ request: Request, policy: CallPolicy = CallPolicy()
  ) -> Call<Reply> {
    Call(
      type: type, service: service, body: request, policy: policy,
      methodPolicy: CallPolicy(options, isShared: idempotency == .readOnly ? true : nil), key: nil
    ) { (bytes) throws(BodyError) in
      try Reply(copying: bytes)
    }
  }
}
