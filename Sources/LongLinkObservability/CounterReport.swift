// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import CoreMetrics
internal import LongLink
internal import LongLinkDriver
internal import LongLinkServer
internal import Synchronization

/// Records counters that a client or a server keeps anyway, by how much they have grown.
final class CounterReport: Sendable {
  /// The value of one series now.
  struct Sample: Sendable {
    let description: MetricDescription
    var label: (name: String, value: String)?
    var second: (name: String, value: String)?
    let value: UInt64

    init(
      _ description: MetricDescription, _ value: some BinaryInteger,
      _ label: (name: String, value: String)? = nil, _ second: (name: String, value: String)? = nil
    ) {
      self.description = description
      self.value = UInt64(clamping: value)
      self.label = label
      self.second = second
    }

    var labels: [(String, String)] {
      [label, second].compactMap { $0.map { ($0.name, $0.value) } }
    }
  }

  private struct Key: Hashable {
    let name: String
    let label: String?
    let second: String?
  }

  private enum Handle: Sendable {
    case counter(Counter, last: UInt64)
    case meter(Meter)
  }

  private let factory: any MetricsFactory
  private let role: (String, String)
  private let handles = Mutex<[Key: Handle]>([:])

  init(_ factory: any MetricsFactory, role: String) {
    self.factory = factory
    self.role = ("longlink.role", role)
  }

  func record(_ samples: [Sample]) {
    handles.withLock { handles in
      for sample in samples {
        let key = Key(
          name: sample.description.name, label: sample.label?.value, second: sample.second?.value)
        switch handles[key] ?? make(sample) {
        case .counter(let counter, let last):
          counter.increment(by: sample.value >= last ? sample.value - last : 0)
          handles[key] = .counter(counter, last: sample.value)
        case .meter(let meter):
          meter.set(sample.value)
          handles[key] = .meter(meter)
        }
      }
    }
  }

  private func make(_ sample: Sample) -> Handle {
    let (name, labels) = (sample.description.name, [role] + sample.labels)
    if sample.description.kind == .meter {
      return .meter(Meter(label: name, dimensions: labels, factory: factory))
    }
    return .counter(Counter(label: name, dimensions: labels, factory: factory), last: 0)
  }
}

// MARK: - Samples

extension CounterReport {
  static func samples(of counters: ServerCounters) -> [Sample] {
    connectionSamples(of: counters.connections) + requestSamples(of: counters.requests)
      + named(.turnedAway, "setting", counters.rejections)
      + named(.once, "outcome", counters.onceRequests) + [
        Sample(.requests, counters.requestsRunning, ("state", "running")),
        Sample(.queued, counters.bytesUnwritten, ("kind", "output")),
        Sample(.pushes, counters.pushesWaiting),
        Sample(.memory, counters.bytesHeld),
        Sample(.turns, counters.turnsTooLong),
        Sample(.drops, counters.pushesLost, ("name", "pushesLost")),
        Sample(.drops, counters.pushesUnhandled, ("name", "pushesUnhandled")),
        Sample(.drops, counters.pushesDenied, ("name", "pushesDenied")),
      ]
  }

  static func samples(of counters: ClientCounters) -> [Sample] {
    connectionSamples(of: counters.connections) + requestSamples(of: counters.requests) + [
      Sample(.requests, counters.requestsOpen, ("state", "open")),
      Sample(.requests, counters.requestsWaiting, ("state", "waiting")),
      Sample(.queued, counters.bytesUnwritten, ("kind", "output")),
      Sample(.queued, counters.bytesWaiting, ("kind", "requests")),
      Sample(.pushes, counters.pushesWaiting),
      Sample(.reconnects, counters.connects - min(counters.connects, 1)),
      Sample(.attempts, counters.failedAttempts),
      Sample(.failovers, counters.failovers),
      Sample(.drops, counters.pushesDropped, ("name", "pushesDropped")),
      Sample(.drops, counters.pushesUnhandled, ("name", "pushesUnhandled")),
    ]
  }

  private static func connectionSamples(of counters: ConnectionCounters) -> [Sample] {
    let frames: [(String, received: UInt64, sent: UInt64)] = [
      ("request", counters.requestsReceived, counters.requestsSent),
      ("response", counters.responsesReceived, counters.responsesSent),
      ("item", counters.itemsReceived, counters.itemsSent),
      ("push", counters.pushesReceived, counters.pushesSent),
      ("ping", counters.pingsReceived, counters.pingsSent),
      ("cancel", counters.cancelsReceived, counters.cancelsSent),
    ]
    let drops: [(String, UInt64)] = [
      ("lateItems", counters.lateItems), ("lateEnds", counters.lateEnds),
      ("lateCredits", counters.lateCredits),
      ("droppedUnknownSerials", counters.droppedUnknownSerials),
      ("droppedPongs", counters.droppedPongs), ("droppedIgnorable", counters.droppedIgnorable),
      ("droppedResponses", counters.droppedResponses), ("damagedPackets", counters.damagedPackets),
      ("stalledMessages", counters.stalledMessages), ("pushesGivenUp", counters.pushesGivenUp),
      ("pushesTurnedAway", counters.pushesTurnedAway),
      ("broadcastsSkipped", counters.broadcastsSkipped),
    ]
    return [
      Sample(.bytes, counters.bytesReceived, ("direction", "in")),
      Sample(.bytes, counters.bytesSent, ("direction", "out")),
      Sample(.heartbeats, counters.suspicions),
    ]
      + frames.flatMap { kind, received, sent in
        [
          Sample(.frames, received, ("direction", "in"), ("kind", kind)),
          Sample(.frames, sent, ("direction", "out"), ("kind", kind)),
        ]
      } + drops.map { Sample(.drops, $0.1, ("name", $0.0)) }
  }

  private static func requestSamples(of counters: RequestCounters) -> [Sample] {
    [
      Sample(.retries, counters.retriedNotSent, ("delivery", "notSent")),
      Sample(.retries, counters.retriedRefused, ("delivery", "refused")),
      Sample(.retries, counters.retriedIdempotent, ("delivery", "sent")),
      Sample(.drops, counters.lateReplies, ("name", "lateReplies")),
    ]
  }

  private static func named(
    _ description: MetricDescription, _ label: String, _ counts: [String: UInt64]
  ) -> [Sample] {
    counts.sorted { $0.key < $1.key }.map { Sample(description, $0.value, (label, $0.key)) }
  }
}
#endif
