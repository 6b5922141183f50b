// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
internal import LongLinkServer
internal import LongLinkTransport
internal import NIOCore
internal import Synchronization

/// Puts the port's questions to one loop of the server. Of each kind at most one is under way, so
/// that little waits on a loop that hangs. It is used on the port's thread.
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
  private let pulse = LoopPulse()
  private var waiting: [Waiting] = []
  private var isAsking = false
  private var isPinging = false
  private var isSurveying = false
  /// How long the loop took to begin its last survey, in nanoseconds.
  private(set) var delay: Int64 = 0
  /// The last survey and figures of the loop; nil before the first ones.
  private(set) var latest: LoopReport?

  init(_ index: Int, _ loop: ServerLoop, on thread: PortThread) {
    self.index = index
    self.loop = loop
    self.thread = thread
  }

  /// When the loop has last run a job for the port; at first, when the port began to watch it.
  var ran: NIODeadline { pulse.last }

  /// The milliseconds since the loop has run a job for the port.
  var silence: Int64 { max(0, (NIODeadline.now() - ran).nanoseconds / 1_000_000) }

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
    let courier = NIOLoopBound(self, eventLoop: thread.loop)
    loop.visit { [thread, pulse] (visit: ServerLoopVisit) in
      pulse.beat()
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
    askNext()
  }

  /// Lets the loop run a job, unless one is under way, and calls `then` afterwards.
  func ping(then: @escaping () -> Void) {
    guard !isPinging else { return }
    isPinging = true
    let bound = NIOLoopBound((courier: self, then: then), eventLoop: thread.loop)
    loop.visit { [thread, pulse] _ in
      pulse.beat()
      thread.loop.execute {
        bound.value.courier.isPinging = false
        bound.value.then()
      }
    }
  }

  /// Surveys the loop, unless a survey is under way, and calls `then` when `latest` has it.
  func survey(_ watch: ServerWatch, then: @escaping () -> Void) {
    guard !isSurveying else { return }
    isSurveying = true
    let asked = NIODeadline.now()
    let bound = NIOLoopBound((courier: self, then: then), eventLoop: thread.loop)
    loop.visit { [thread, pulse] visit in
      let began = NIODeadline.now()
      pulse.beat()
      // Before the survey, which counts what the connections have that end meanwhile.
      let figures = watch.figures ?? Figures()
      visit.survey {
        pulse.beat()
      } then: { survey in
        let report = LoopReport(survey: survey, figures: figures, began: began)
        thread.loop.execute {
          let courier = bound.value.courier
          (courier.isSurveying, courier.latest) = (false, report)
          courier.delay = (began - asked).nanoseconds
          bound.value.then()
        }
      }
    }
  }
}

/// When a loop has last run a job for the port. The loop sets it, and any thread may read it.
private final class LoopPulse: Sendable {
  private let nanoseconds = Atomic(NIODeadline.now().uptimeNanoseconds)

  var last: NIODeadline { .uptimeNanoseconds(nanoseconds.load(ordering: .relaxed)) }

  func beat() { nanoseconds.store(NIODeadline.now().uptimeNanoseconds, ordering: .relaxed) }
}

/// What a loop has last told.
struct LoopReport: Sendable {
  let survey: LaneSurvey
  let figures: Figures
  /// When the loop began to tell it.
  let began: NIODeadline
}
#endif
