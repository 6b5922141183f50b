// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

/// A call for the core: the body to send and the effective policy.
struct CallPlan: Sendable {
  let type: MessageType
  let method: MethodName
  let body: any BodyEncodable & Sendable
  let options: RequestOptions
  /// The key of the call; nil for a call that neither shares an exchange nor uses the cache.
  let key: CallKey?
  let isShared: Bool
  /// How long responses are cached; nil if they are not.
  let cache: CachePolicy?
  let reloads: Bool
  /// The carrier that makes the call; nil for the client's link.
  let carrier: (any CallCarrier)?

  /// Throws `encodingFailed` if the call needs a key and its body cannot be encoded.
  init(
    _ type: MessageType, of method: MethodName, _ body: any BodyEncodable & Sendable,
    _ policy: CallPolicy, key: [UInt8]?, carrier: (any CallCarrier)? = nil
  ) throws(LongLinkError) {
    self.type = type
    self.method = method
    self.carrier = carrier
    options = policy.options
    cache = policy.cache.flatMap { $0.isOn ? $0 : nil }
    isShared = policy.isShared ?? (cache != nil)
    reloads = policy.reloads ?? false
    guard isShared || cache != nil else {
      self.body = body
      self.key = nil
      return
    }
    do throws(BodyError) {
      let bytes = try body.encodedBytes()
      self.body = bytes
      self.key = CallKey(
        type: type, bytes: key ?? bytes, metadata: options.metadata,
        idempotencyKey: options.ticket?.key ?? options.idempotencyKey)
    } catch {
      throw LongLinkError(
        .encodingFailed, doing: .request(type), detail: "\(error)")
    }
  }

  /// The operation of the call, for errors.
  var operation: LongLinkError.Operation {
    carrier.map { .exchange($0.operation, type: type) } ?? .request(type)
  }

  /// The options that must be equal for calls to share an exchange.
  var sharedTerms: RequestOptions {
    var terms = options
    terms.timeout = nil
    terms.priority = nil
    return terms
  }
}
