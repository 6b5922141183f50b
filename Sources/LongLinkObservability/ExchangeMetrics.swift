// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import CoreMetrics
internal import LongLinkCore
internal import LongLinkDriver
internal import Synchronization

/// Records what has to do with one request or one connection.
final class ExchangeMetrics: Observer {
  /// What the timer of a call depends on. Its values are few, whatever a peer sends.
  private struct Call: Hashable {
    let direction: ExchangeRecord.Direction
    /// Nil for all types whose method has no name.
    let type: MessageType?
    let error: CallError?
    let delivery: Delivery?
  }

  private struct Handles {
    var calls: [Call: CoreMetrics.Timer] = [:]
    var counters: [Label: Counter] = [:]
  }

  private struct Label: Hashable {
    let name: String
    let value: String
  }

  private let metrics: LongLinkMetrics
  private let role: (String, String)
  private let handshaking: Meter
  private let open: Meter
  private let handles = Mutex(Handles())

  init(_ metrics: LongLinkMetrics, _ role: Role) {
    self.metrics = metrics
    self.role = ("longlink.role", role == .client ? "client" : "server")
    func meter(_ state: String) -> Meter {
      Meter(
        label: MetricDescription.connections.name,
        dimensions: [("longlink.role", role == .client ? "client" : "server"), ("state", state)],
        factory: metrics.factory)
    }
    handshaking = meter("handshake")
    open = meter("open")
  }

  // MARK: Requests

  func ended(_ exchange: ExchangeRecord) {
    guard let ended = exchange.ended, let ending = exchange.ending else { return }
    let method = exchange.method ?? metrics.methods[exchange.type]
    let isOutbound = exchange.direction == .outbound
    let call = Call(
      direction: exchange.direction, type: method == nil ? nil : exchange.type,
      error: CallError(ending), delivery: isOutbound ? exchange.delivery : nil)
    timer(of: call, method ?? "_OTHER").recordNanoseconds(ended - exchange.began)
    if !isOutbound, case .refused(let code) = ending {
      count(.rejections, ("code", CallError.label(of: code)))
    }
  }

  private func timer(of call: Call, _ method: String) -> CoreMetrics.Timer {
    handles.withLock { handles in
      if let timer = handles.calls[call] { return timer }
      var labels = [("rpc.system.name", "longlink"), ("rpc.method", method)]
      if let error = call.error { labels.append(("error.type", error.label)) }
      if let delivery = call.delivery { labels.append(("longlink.delivery", delivery.rawValue)) }
      let description = call.direction == .outbound ? MetricDescription.clientCall : .serverCall
      let timer = CoreMetrics.Timer(
        label: description.name, dimensions: labels, preferredDisplayUnit: .seconds,
        factory: metrics.factory)
      handles.calls[call] = timer
      return timer
    }
  }

  private func count(_ description: MetricDescription, _ label: (String, String)? = nil) {
    let key = Label(name: description.name, value: label?.1 ?? "")
    let counter = handles.withLock { handles in
      if let counter = handles.counters[key] { return counter }
      let counter = Counter(
        label: description.name, dimensions: [role] + (label.map { [$0] } ?? []),
        factory: metrics.factory)
      handles.counters[key] = counter
      return counter
    }
    counter.increment()
  }

  // MARK: Connections

  func began(_ link: LinkRecord) {
    if !link.isShort { handshaking.increment(by: 1) }
  }

  func opened(_ link: LinkRecord) {
    guard !link.isShort else { return }
    handshaking.decrement(by: 1)
    open.increment(by: 1)
    count(.handshakes, ("outcome", "accepted"))
  }

  func stalled(_ link: LinkRecord) { count(.stalls) }

  func ended(_ link: LinkRecord) {
    guard !link.isShort, let reason = link.reason else { return }
    if link.opened != nil {
      open.decrement(by: 1)
    } else {
      handshaking.decrement(by: 1)
      let isRefused = reason.kind == .notAccepted || reason.kind == .goneAway
      count(.handshakes, ("outcome", isRefused ? "refused" : "failed"))
    }
    count(.ended, ("reason", reason.token))
    if case .violation(let violation) = reason {
      count(.violations, ("name", violation.rule.rawValue))
    }
  }
}

/// How a call failed, as a label.
enum CallError: Hashable {
  case code(UInt32)
  case local(LongLinkError.Code)
  case other

  /// Returns nil for a success.
  init?(_ ending: ExchangeEnding) {
    switch ending {
    case .answered(.ok): return nil
    case .answered(let code), .refused(let code), .interrupted(let code):
      self = Self.named.contains(code) ? .code(code.rawValue) : .other
    case .cancelled: self = .local(.cancelled)
    case .expired: self = .local(.deadlineExceeded)
    case .lost: self = .local(.connectionLost)
    case .failed(let code): self = .local(code)
    }
  }

  /// The codes that the protocol gives a meaning. Applications, and peers, use any others.
  private static let named: Set<ResponseCode> = [
    .malformed, .unauthenticated, .forbidden, .unknownType, .deadlinePassed, .conflict, .gone,
    .preconditionFailed, .tooLarge, .overloaded, .cancelled, .failed, .draining,
  ]

  static func label(of code: ResponseCode) -> String {
    named.contains(code) ? "\(code.rawValue)" : "_OTHER"
  }

  var label: String {
    switch self {
    case .code(let code): "\(code)"
    case .local(let code): "\(code)"
    case .other: "_OTHER"
    }
  }
}
#endif
