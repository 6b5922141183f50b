// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
internal import LongLinkDriver

/// Counts what happens on one loop, where alone it is used: no request pays for a lock.
final class LoopFigures {
  private(set) var figures = Figures()
  private let names: [MessageType: String]
  /// The index of the figures of each method that has a name.
  private var indices: [MessageType: Int] = [:]

  /// Makes figures; `names` are those of methods that have none of their own.
  init(names: [MessageType: String]) {
    self.names = names
    // All others.
    figures.methods.append(MethodFigures(CodeLabel.other))
  }

  func ended(_ exchange: ExchangeRecord) {
    guard let ended = exchange.ended, let ending = exchange.ending, let link = exchange.link
    else { return }
    let code = ending.code
    let error = code == ResponseCode.ok.rawValue ? nil : CodeLabel.of(code)
    let row = EndedExchange(
      serial: exchange.serial, connection: link.id, code: code, time: ended - exchange.began,
      ended: ended)
    figures.methods[index(of: exchange)].add(row, error: error)
    if let error, ending.isResponse { figures.rejections[error, default: 0] += 1 }
  }

  private func index(of exchange: ExchangeRecord) -> Int {
    if let index = indices[exchange.type] { return index }
    // Types without a name are not kept: a peer can send any.
    guard let name = exchange.method ?? names[exchange.type] else { return 0 }
    figures.methods.append(MethodFigures(name))
    indices[exchange.type] = figures.methods.count - 1
    return figures.methods.count - 1
  }

  /// Forgets what is kept for an hour alone.
  func forgetOld(at now: LinkInstant) {
    for index in figures.methods.indices { figures.methods[index].forgetOld(at: now) }
  }

  func opened() { figures.handshakes[.accepted, default: 0] += 1 }

  func ended(_ link: LinkRecord, _ reason: CloseReason) {
    if link.opened == nil { figures.handshakes[HandshakeOutcome(of: reason), default: 0] += 1 }
    figures.ended[EndReason(link, reason), default: 0] += 1
    if case .violation(let violation) = reason {
      figures.violations[violation.rule.rawValue, default: 0] += 1
    }
    figures.creditStalls += link.creditStalls
  }
}

extension ExchangeEnding {
  /// The code of the response, or what comes nearest to it if there is none.
  fileprivate var code: UInt32 {
    switch self {
    case .answered(let code), .refused(let code), .interrupted(let code): code.rawValue
    case .cancelled: ResponseCode.cancelled.rawValue
    case .expired: ResponseCode.deadlinePassed.rawValue
    case .failed: ResponseCode.failed.rawValue
    // There is no code for it.
    case .lost: 0
    }
  }

  /// Whether a response was decided.
  fileprivate var isResponse: Bool {
    switch self {
    case .answered, .refused, .interrupted: true
    case .cancelled, .expired, .failed, .lost: false
    }
  }
}
#endif
