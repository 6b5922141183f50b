// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkServer

/// The sums over all loops of a server, as far as they are known.
struct ServerTotals {
  var figures = Figures()
  private(set) var counters = ConnectionCounters()
  private(set) var requests = RequestCounters()
  private(set) var pushesUnhandled: UInt64 = 0
  private(set) var shortLinks: UInt64 = 0
  private(set) var creditStalls: UInt64 = 0
  private(set) var open = 0
  private(set) var draining = 0
  private(set) var requestsRunning = 0
  private(set) var pushesWaiting = 0
  private(set) var queuedBytes = 0
  /// The counters that belong to no loop.
  let shared: ServerCounters

  /// Sums up what the loops have last told.
  init(_ reports: [LoopReport?], shared: ServerCounters) {
    self.shared = shared
    var methods: [String: MergedMethod] = [:]
    for case let report? in reports {
      let survey = report.survey
      counters += survey.counters
      requests += survey.requests
      pushesUnhandled += survey.pushesUnhandled
      shortLinks += survey.shortLinks
      creditStalls += survey.creditStalls + report.figures.creditStalls
      open += survey.open
      draining += survey.draining
      requestsRunning += survey.requestsRunning
      pushesWaiting += survey.pushesWaiting
      queuedBytes += survey.queuedBytes
      figures.ended.merge(report.figures.ended, uniquingKeysWith: +)
      figures.handshakes.merge(report.figures.handshakes, uniquingKeysWith: +)
      figures.violations.merge(report.figures.violations, uniquingKeysWith: +)
      figures.rejections.merge(report.figures.rejections, uniquingKeysWith: +)
      for method in report.figures.methods {
        methods[method.name, default: MergedMethod(name: method.name)].add(method)
      }
    }
    self.methods = methods.values.sorted { $0.name < $1.name }
  }

  /// The methods by name.
  let methods: [MergedMethod]

  /// The times of all requests, also of those that failed.
  var times: Histogram {
    methods.reduce(into: Histogram()) { $0.add($1.all) }
  }

  /// The requests that failed.
  var errors: UInt64 {
    methods.reduce(0) { $0 + $1.errors.values.reduce(0) { $0 + $1.count } }
  }

  /// What was dropped, by the name of its counter.
  var drops: [(name: String, count: UInt64)] {
    [
      // The first seven by the names that the protocol gives them.
      ("unknownSerial", counters.droppedUnknownSerials), ("lateReply", requests.lateReplies),
      ("unsolicitedPong", counters.droppedPongs), ("ignoredKind", counters.droppedIgnorable),
      ("lateItem", counters.lateItems), ("lateEnd", counters.lateEnds),
      ("lateCredit", counters.lateCredits), ("response", counters.droppedResponses),
      ("damagedPacket", counters.damagedPackets), ("stalledMessage", counters.stalledMessages),
      ("pushGivenUp", counters.pushesGivenUp), ("pushTurnedAway", counters.pushesTurnedAway),
      ("pushLost", shared.pushesLost), ("pushDenied", shared.pushesDenied),
      ("pushUnhandled", pushesUnhandled), ("broadcastSkipped", counters.broadcastsSkipped),
    ]
  }

  /// The frames in both directions, by kind.
  var frames: [(kind: String, received: UInt64, sent: UInt64)] {
    [
      ("request", counters.requestsReceived, counters.requestsSent),
      ("response", counters.responsesReceived, counters.responsesSent),
      ("item", counters.itemsReceived, counters.itemsSent),
      ("push", counters.pushesReceived, counters.pushesSent),
      ("ping", counters.pingsReceived, counters.pingsSent),
      ("cancel", counters.cancelsReceived, counters.cancelsSent),
    ]
  }
}

/// One method on all loops.
struct MergedMethod {
  let name: String
  private(set) var successes = Histogram()
  /// The times of failed requests by the label of the error.
  private(set) var errors: [String: Histogram] = [:]
  private(set) var slowest: [EndedExchange] = []
  private(set) var failed: [EndedExchange] = []

  init(name: String) {
    self.name = name
  }

  mutating func add(_ method: MethodFigures) {
    successes.add(method.successes)
    for (error, times) in method.times { errors[error, default: Histogram()].add(times) }
    slowest = Array(
      (slowest + method.slowest).sorted { $0.time > $1.time }.prefix(MethodFigures.most))
    failed = Array(
      (failed + method.failed).sorted { $0.ended > $1.ended }.prefix(MethodFigures.most))
  }

  var all: Histogram {
    errors.values.reduce(into: successes) { $0.add($1) }
  }
}
#endif
