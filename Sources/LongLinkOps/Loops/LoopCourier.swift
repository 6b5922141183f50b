// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
internal import LongLinkServer
internal import LongLinkTransport
internal import NIOCore

/// Puts the port's questions to one loop of the server, one at a time, so that little waits on a
/// loop that hangs. It is used on the port's thread.
final class LoopCourier {
  /// A question, which returns what the port's thread does with the answer.
  typealias Question = @Sendable (ServerLoopVisit) -> @Sendable () -> Void

  private struct Waiting {
    let question: Question
    let until: NIODeadline
  }

  let index: Int
  let loop: ServerLoop
  private let thread: PortThread
  private var waiting: [Waiting] = []
  private var isAsking = false
  /// When the loop has last run a job for the port.
  private var answered = NIODeadline.now()
  private var asked = NIODeadline.now()
  /// How long the loop took for the last question, in nanoseconds.
  private(set) var delay: Int64 = 0
  /// The last survey and figures of the loop; nil before the first ones.
  var latest: LoopReport?

  init(_ index: Int, _ loop: ServerLoop, on thread: PortThread) {
    self.index = index
    self.loop = loop
    self.thread = thread
  }

  /// The milliseconds since the loop has run a job for the port.
  var silence: Int64 { max(0, (NIODeadline.now() - answered).nanoseconds / 1_000_000) }

  /// Whether the loop has run a job for the port within 1 s. Call it after a question.
  ///
  /// A loop that lives can be too slow for a whole survey.
  var isLive: Bool { silence < PortLimits.loopTime.nanoseconds / 1_000_000 }

  /// The type of the request whose handler runs on the loop now; nil if none is known to.
  var handler: MessageType? { loop.loop.handler.type }

  /// Asks the loop, unless it does not get to it until `deadline`.
  func ask(until deadline: NIODeadline, _ question: @escaping Question) {
    let now = NIODeadline.now()
    waiting.removeAll { $0.until <= now }
    waiting.append(Waiting(question: question, until: deadline))
    if !isAsking { askNext() }
  }

  private func askNext() {
    let now = NIODeadline.now()
    waiting.removeAll { $0.until <= now }
    guard !waiting.isEmpty else { return }
    let next = waiting.removeFirst()
    isAsking = true
    asked = now
    let courier = NIOLoopBound(self, eventLoop: thread.loop)
    loop.visit { [thread] (visit: ServerLoopVisit) in
      // If the loop is too late for the one who asked, nothing is done any more.
      let conclude = NIODeadline.now() < next.until ? next.question(visit) : nil
      thread.loop.execute {
        courier.value.returned()
        conclude?()
      }
    }
  }

  private func returned() {
    isAsking = false
    answered = .now()
    delay = (answered - asked).nanoseconds
    askNext()
  }
}

/// What a loop has last told.
struct LoopReport: Sendable {
  let survey: LaneSurvey
  let figures: Figures
}
#endif
