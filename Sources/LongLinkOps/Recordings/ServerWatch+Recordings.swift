// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkServer
internal import LongLinkTransport

/// Recordings of what links have caused. All of it happens on the link's loop.
extension ServerWatch {
  /// The names of methods as recordings have them, each on one line.
  var methodNames: [MessageType: String] {
    methods.merging(server?.methodNames ?? [:]) { $1 }
      .mapValues { $0.split(whereSeparator: \.isNewline).joined(separator: " ") }
  }

  func abandoned(_ link: LinkRecord, for reason: CloseReason) {
    guard recordings != nil, case .violation(let violation) = reason,
      // Of a client that said nothing there is nothing to see, and balancers probe that way.
      violation.rule != .firstFrameTimeout
    else { return }
    let id = link.id
    let wait = GoodbyeWait { self.record(violation.rule.rawValue, id) }
    EventLoop.current?.atEndOfTurn(wait, token: 0)
  }

  /// Writes what the current loop has recorded, unless the cause had a file just before.
  func record(_ cause: String, _ connection: UInt64) {
    guard let recordings, let loop = EventLoop.current, recordings.begins(cause) else { return }
    let snapshot = loop.recorded
    recordings.write(
      snapshot.map { [$0] } ?? [], names: methodNames, cause, connection: connection)
  }
}

/// Waits for the end of the next turn: a goaway that was queued is written by then.
private final class GoodbyeWait: TurnHandler {
  private let then: () -> Void

  init(then: @escaping () -> Void) {
    self.then = then
  }

  func turnEnds(token: UInt64) {
    if token == 0 { EventLoop.current?.atEndOfTurn(self, token: 1) } else { then() }
  }
}
#endif
