// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

/// The configuration of a call client. Every field has a default.
public struct CallConfiguration: Sendable {
  /// The policy for all calls, which every other policy overrides. Default: empty.
  public var policy: CallPolicy
  /// Policies and errors of services, by name (`RPCMethod.service`). Default: none.
  public var services: [String: CallService]
  /// Policies of single methods, by message type (`RPCMethod.type`). Default: none.
  public var policies: [MessageType: CallPolicy]
  /// The most bytes of the cache, with the keys and 256 bytes for each response; at least 0.
  /// Default 20 MiB. The responses that were used least recently are evicted first.
  public var cacheBytes: Int
  /// The texts of errors for people. Default: English.
  public var texts: ErrorTexts

  /// Functions around each exchange, the first one outermost. Default: none.
  ///
  /// Interceptors are below de-duplication and the cache: they do not run for a call that joins
  /// another call's exchange or is answered from the cache. The response that they return is the
  /// one that is cached. They run in a task on the client's loop, which they must not block.
  public var interceptors: [CallInterceptor]

  /// Makes a configuration.
  public init(
    policy: CallPolicy = CallPolicy(), services: [String: CallService] = [:],
    policies: [MessageType: CallPolicy] = [:], cacheBytes: Int = 20_971_520,
    texts: ErrorTexts = .english, interceptors: [CallInterceptor] = []
  ) {
    self.policy = policy
    self.services = services
    self.policies = policies
    self.cacheBytes = cacheBytes
    self.texts = texts
    self.interceptors = interceptors
  }

  /// Throws `invalidConfiguration`, with the field's name, if a value is out of range.
  public func validate() throws(LongLinkError) {
    if cacheBytes < 0 { throw .configuration("cacheBytes", "it is negative") }
  }
}

extension CallConfiguration {
  /// Returns the effective policy of a call.
  func policy<Reply>(of call: Call<Reply>) -> CallPolicy {
    var policy = call.policy
    if let own = policies[call.type] { policy = policy.over(own) }
    policy = policy.over(call.methodPolicy)
    if let service = services[call.method.service] { policy = policy.over(service.policy) }
    return policy.over(self.policy)
  }

  /// Makes the error of a call, with its text and the application's own error.
  func describe<Reply>(_ error: LongLinkError, of call: Call<Reply>) -> CallError {
    CallError(
      error.of(call.method), texts: texts,
      applicationErrors: services[call.method.service]?.errors ?? [])
  }
}
