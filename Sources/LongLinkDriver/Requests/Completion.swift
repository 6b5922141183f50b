// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

/// How a request ended: the body of a 200, or why there is none.
package typealias Outcome = Result<[UInt8], LongLinkError>

/// Who waits for a request's outcome; it is called exactly once.
package enum Completion {
  /// A suspended task of the loop.
  case waiter(Waiter<Outcome>)
  /// A suspended task that goes on elsewhere.
  case distantWaiter(Waiter<Outcome>)
  /// A suspended task that goes on on the global pool, as do many others at the same time.
  case pooledWaiter(Waiter<Outcome>)
  /// A function of the driver, called on the loop and, where a request fails at once, within the
  /// call that makes it.
  case function(@Sendable (Outcome) -> Void)
  /// A caller's function, called on the loop, but never within the call that makes the request.
  case handler(@Sendable (Outcome) -> Void)

  func callAsFunction(_ outcome: Outcome) {
    switch self {
    case .waiter(let waiter), .distantWaiter(let waiter), .pooledWaiter(let waiter):
      waiter(outcome)
    case .function(let function), .handler(let function): function(outcome)
    }
  }
}

/// A request that has not ended, as the driver knows it.
struct PendingRequest {
  let type: MessageType
  let offline: OfflinePolicy
  let retry: RetryMode
  let deadline: LinkInstant
  let body: RequestBody
  /// What is told to the peer beside the time that remains; nil in the usual case.
  let extras: Extras?
  let completion: Completion

  /// Metadata that the caller gave. Apart from the request, which is small without it.
  final class Extras {
    let metadata: Metadata

    init(_ metadata: Metadata) {
      self.metadata = metadata
    }
  }

  @inline(__always)
  init(
    _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
    until deadline: LinkInstant, offline: OfflinePolicy, on loop: EventLoop,
    _ completion: consuming Completion
  ) {
    self.type = type
    self.offline = offline
    retry = options.retry ?? .ifSafe
    self.deadline = deadline
    self.body = body
    extras = options.hasMetadata ? Extras(Metadata(copy options, on: loop)) : nil
    self.completion = completion
  }

  var priority: UInt32 { extras?.metadata.priority ?? 0 }

  /// Whether its body goes in fragments, where the peer takes them.
  var isLarge: Bool { (try? terms.isLarge) ?? false }

  /// On what terms it waits; throws where its body has no encoding.
  var terms: WaitTerms {
    get throws(BodyError) {
      WaitTerms(priority: priority, deadline: deadline, bytes: try body.encodedByteCount)
    }
  }
}
