// SPDX-License-Identifier: Apache-2.0

public import LongLinkDriver
public import LongLinkCore

/// What a call client is to do. Every field has a default.
public struct CallConfiguration: Sendable {
  /// The widest word on how calls are made. Default: it says nothing.
  public var policy: CallPolicy
  /// What is known of services, by their names: `RPCMethod.service`. Default: nothing.
  public var services: [String: CallService]
  /// How the calls of single methods are made, by their message types: `RPCMethod.type`.
  /// Default: as the methods themselves say.
  public var policies: [MessageType: CallPolicy]
  /// The most bytes that cached answers may take, with their keys and 256 bytes for each. Default
  /// 20 MiB.
  public var cacheBytes: Int
  /// The texts in which errors are told to people. Default: English.
  public var texts: ErrorTexts

  /// Makes a configuration.
  public init(
    policy: CallPolicy = CallPolicy(), services: [String: CallService] = [:],
    policies: [MessageType: CallPolicy] = [:], cacheBytes: Int = 20_971_520,
    texts: ErrorTexts = .english
  ) {
    self.policy = policy
    self.services = services
    self.policies = policies
    self.cacheBytes = cacheBytes
    self.texts = texts
  }

  /// Throws `invalidConfiguration`, naming the field, when the configuration cannot work.
  public func validate() throws(LongLinkError) {
    if cacheBytes < 0 { throw .configuration("cacheBytes", "it is negative") }
  }
}

extension CallConfiguration {
  /// How a call is made, by the words of all who may say it.
  func policy<Reply>(of call: Call<Reply>) -> CallPolicy {
    var policy = call.policy
    if let own = policies[call.type] { policy = policy.over(own) }
    policy = policy.over(call.methodPolicy)
    if let service = services[call.service] { policy = policy.over(service.policy) }
    return policy.over(self.policy)
  }

  /// The failure of a call in the application's terms.
  func describe<Reply>(_ error: LongLinkError, of call: Call<Reply>) -> CallError {
    CallError(error, texts: texts, applicationErrors: services[call.service]?.errors ?? [])
  }
}
