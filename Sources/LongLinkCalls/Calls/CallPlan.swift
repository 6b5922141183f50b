// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore

/// A call as the core takes it: what to send, and on what terms.
struct CallPlan: Sendable {
  let type: MessageType
  let body: any BodyEncodable & Sendable
  let options: RequestOptions
  /// Nil for a call that neither shares an exchange nor looks into the cache.
  let key: CallKey?
  let isShared: Bool
  /// Nil where answers are not kept.
  let cache: CachePolicy?
  let reloads: Bool

  /// Throws `encodingFailed` where the call needs a key and its body has no encoding.
  init(
    _ type: MessageType, _ body: any BodyEncodable & Sendable, _ policy: CallPolicy,
    key: [UInt8]?
  ) throws(LongLinkError) {
    self.type = type
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
        idempotencyKey: options.idempotencyKey)
    } catch {
      throw LongLinkError(
        .encodingFailed, doing: .request(type), detail: "\(error)")
    }
  }

  /// Those terms of an exchange that all of its callers have to agree on.
  var sharedTerms: RequestOptions {
    var terms = options
    terms.timeout = nil
    terms.priority = nil
    return terms
  }
}
