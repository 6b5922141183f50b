// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// The configuration of a service in a call client.
public struct CallService: Sendable {
  /// The policy of the service's calls. Policies of calls and methods override it.
  public var policy: CallPolicy
  /// The application's error types for the service. The first one that defines a code is used.
  public var errors: [any ApplicationError.Type]

  /// Makes a service.
  public init(policy: CallPolicy = CallPolicy(), errors: [any ApplicationError.Type] = []) {
    self.policy = policy
    self.errors = errors
  }
}

extension RPCMethod where Request: BodyEncodable, Reply: BodyDecodable {
  /// Returns a call of the method, without making it. Pass it to a ``CallClient``, which makes the
  /// call; you can pass it more than once.
  public func callAsFunction(
    _ request: Request, policy: CallPolicy = CallPolicy()
  ) -> Call<Reply> {
    Call(
      type: type, method: fullName, body: request, policy: policy,
      methodPolicy: CallPolicy(options, isShared: isReadOnly ? true : nil), key: nil
    ) { (bytes) throws(BodyError) in
      try Reply(copying: bytes)
    }
  }
}
