// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

/// The outcome of a request: the body of a 200, or an error.
package typealias Outcome = Result<[UInt8], LongLinkError>

extension Outcome {
  /// What has happened to the request.
  var delivery: Delivery {
    switch self {
    case .success: .answered
    case .failure(let error): error.delivery
    }
  }
}

/// The receiver of a request's outcome, called exactly once.
package enum Completion: Sendable {
  /// A suspended task of the loop.
  case waiter(RequestWatch.Waiter)
  /// A suspended task that continues elsewhere.
  case distantWaiter(Waiter<Outcome>)
  /// A suspended task that continues on the global pool, with many others at the same time.
  case pooledWaiter(Waiter<Outcome>)
  /// A function of the driver, called on the loop, possibly within the call that makes the request.
  case function(@Sendable (Outcome) -> Void)
  /// A completion handler, called on the loop, never within the call that makes the request.
  case handler(@Sendable (Outcome) -> Void)
  /// A stream, whose items come before the outcome.
  case stream(BoundChannel)
  /// Any of the other cases, for a request that is observed.
  case observed(ObservedCompletion)

  package var isHandler: Bool {
    switch self {
    case .handler: true
    case .observed(let observed): observed.isHandler
    default: false
    }
  }

  var isStream: Bool {
    switch self {
    case .stream: true
    case .observed(let observed): observed.channel != nil
    default: false
    }
  }

  /// This side of the stream; nil if the request carries no items.
  var channel: BoundChannel? {
    switch self {
    case .stream(let channel): channel
    case .observed(let observed): observed.channel
    default: nil
    }
  }

  /// The record of the request; nil without observers.
  var record: ExchangeRecord? {
    if case .observed(let observed) = self { observed.record } else { nil }
  }

  /// Returns this completion, or one that ends `record` first if that is not nil.
  @inline(__always)
  func recorded(by record: ExchangeRecord?) -> Completion {
    guard let record else { return self }
    return .observed(ObservedCompletion(self, record))
  }

  func callAsFunction(_ outcome: consuming Outcome) {
    switch self {
    case .waiter(let waiter): waiter(outcome)
    case .distantWaiter(let waiter), .pooledWaiter(let waiter): waiter(outcome)
    case .function(let function), .handler(let function): function(outcome)
    case .stream(let channel): channel.value.ended(outcome)
    case .observed(let observed): observed.complete(outcome)
    }
  }
}

/// The completion of an observed request, with its properties. `Completion` does not ask another
/// one for them, because it could then not be inlined for each request.
package final class ObservedCompletion: Sendable {
  let completion: Completion
  let record: ExchangeRecord

  var isHandler: Bool { completion.isHandler }
  var channel: BoundChannel? { completion.channel }

  func complete(_ outcome: Outcome) {
    record.end(outcome)
    completion(outcome)
  }

  fileprivate init(_ completion: Completion, _ record: ExchangeRecord) {
    self.completion = completion
    self.record = record
  }
}

/// The driver's part of a request that has not ended.
struct PendingRequest {
  let type: MessageType
  let offline: OfflinePolicy
  let retry: RetryMode
  let runsOnce: Bool
  let deadline: LinkInstant
  private let began: LinkInstant
  let body: RequestBody
  /// The data that only few requests have, such as those with streams; nil in the usual case.
  let extras: Extras?
  let completion: Completion

  /// The data that only few requests have, stored separately to keep the request small.
  final class Extras {
    /// Metadata for the peer besides the remaining time.
    let metadata: Metadata?
    /// The metadata with what observers have added; nil if they have added nothing.
    let observed: Metadata?
    /// The peer's latest refusal of the request, as text; nil if it has refused none.
    let refusal: String?
    /// This side of the request's stream; nil if the request carries no items.
    let channel: ItemChannel?
    /// Its ticket, if it runs once and has one.
    let ticket: OnceTicket?

    init(_ options: RequestOptions, _ completion: Completion) {
      channel = completion.channel?.value
      ticket = options.ticket
      let record = completion.record
      let metadata = options.hasMetadata || channel != nil ? Metadata(options) : nil
      self.metadata = metadata
      observed = record.flatMap { record in
        guard record.metadata != options.metadata else { return nil }
        var observed = metadata ?? Metadata()
        observed.setEntries(record.metadata)
        return observed
      }
      refusal = nil
    }

    init(_ other: Extras?, refusal: String) {
      metadata = other?.metadata
      observed = other?.observed
      channel = other?.channel
      ticket = other?.ticket
      self.refusal = refusal
    }
  }

  @inline(__always)
  init(
    _ type: MessageType, _ body: consuming RequestBody, _ options: borrowing RequestOptions,
    from now: LinkInstant, until deadline: LinkInstant, offline: OfflinePolicy,
    _ completion: consuming Completion
  ) {
    self.type = type
    self.offline = offline
    let isOnce = options.runsOnce
    retry = options.retry ?? (isOnce ? .once : .ifSafe)
    runsOnce = isOnce
    self.deadline = deadline
    began = now
    self.body = body
    let hasMore =
      switch completion {
      case .stream, .observed: true
      default: (options.rare != nil || options.priority != nil) && options.needsExtras
      }
    extras = hasMore ? Extras(copy options, copy completion) : nil
    self.completion = completion
  }

  /// Whether the request may be sent again: not once an item of its stream was written or received.
  var mayRetry: Bool {
    retry != .never && channel?.hasWritten != true && channel?.hasReceived != true
  }

  /// The text for people which says that the request's timeout has passed.
  var lateness: String { "the timeout of \(Duration.nanoseconds(deadline - began)) has passed" }

  /// The request's deadline; nil if it has none.
  var limit: LinkInstant? { deadline == .distantFuture ? nil : deadline }

  /// This side of the request's stream; nil if it carries no items. Use it on the loop.
  var channel: ItemChannel? { extras?.channel }

  /// Its ticket, if it runs once and has one.
  var ticket: OnceTicket? { extras?.ticket }

  var priority: UInt32 { extras?.metadata?.priority ?? 0 }
  /// The record of the request; nil without observers.
  var record: ExchangeRecord? { extras == nil ? nil : completion.record }

  /// The peer's latest refusal of the request, as text; nil if it has refused none.
  var refusal: String? { extras?.refusal }

  /// Keeps how the peer has refused an attempt, for the error of a later one.
  mutating func wasRefused(with code: ResponseCode, _ reason: PeerText) {
    let reason = reason.description
    self = PendingRequest(
      self,
      Extras(extras, refusal: reason.isEmpty ? "with \(code)" : "with \(code): \(reason)"))
  }

  private init(_ other: PendingRequest, _ extras: Extras) {
    type = other.type
    offline = other.offline
    retry = other.retry
    runsOnce = other.runsOnce
    deadline = other.deadline
    began = other.began
    body = other.body
    self.extras = extras
    completion = other.completion
  }

  /// Whether the request's body is sent in fragments, if the peer takes them.
  var isLarge: Bool { (try? terms.isLarge) ?? false }

  /// The terms on which the request waits. Throws if its body has no encoding.
  var terms: WaitTerms {
    get throws(BodyError) {
      WaitTerms(priority: priority, deadline: deadline, bytes: try body.encodedByteCount)
    }
  }
}
