internal import LongLinkCore

/// How a request ended: the body of a 200, or why there is none.
package typealias Outcome = Result<[UInt8], LongLinkError>

/// Who waits for a request's outcome; it is called exactly once.
package enum Completion {
  /// A suspended task.
  case waiter(Waiter<Outcome>)
  /// A function that is called on the loop and must not block it.
  case function(@Sendable (Outcome) -> Void)

  func callAsFunction(_ outcome: Outcome) {
    switch self {
    case .waiter(let waiter): waiter(outcome)
    case .function(let function): function(outcome)
    }
  }
}

/// A request that has not ended, as the driver knows it.
struct PendingRequest {
  let type: MessageType
  let body: any BodyEncodable & Sendable
  let deadline: LinkInstant?
  let offline: OfflinePolicy
  let resending: Resending
  /// Whether it keeps its place among the others of its kind.
  let isOrdered: Bool
  /// What is told to the peer beside the time that remains; nil in the usual case.
  let metadata: Metadata?
  /// Nil until the request is launched.
  var completion: Completion?

  /// Whether its body goes in fragments, where the peer takes them.
  var isLarge: Bool { (try? terms.isLarge) ?? false }

  /// On what terms it waits; throws where its body has no encoding.
  var terms: WaitTerms {
    get throws(BodyError) {
      WaitTerms(
        priority: metadata?.priority ?? 0, deadline: deadline ?? .distantFuture,
        bytes: try body.encodedByteCount)
    }
  }
}
