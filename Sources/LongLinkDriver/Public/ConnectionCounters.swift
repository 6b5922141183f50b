// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// What one or more connections counted, each number since its beginning.
public struct ConnectionCounters: Hashable, Sendable {
  /// Bytes read.
  public package(set) var bytesReceived: UInt64 = 0
  /// Bytes written.
  public package(set) var bytesSent: UInt64 = 0
  /// Whole, undamaged frames read.
  public package(set) var framesReceived: UInt64 = 0
  /// Requests of this side that left.
  public package(set) var requestsSent: UInt64 = 0
  /// Requests of the peer that arrived.
  public package(set) var requestsReceived: UInt64 = 0
  /// Responses of the peer that arrived.
  public package(set) var responsesReceived: UInt64 = 0
  /// Responses of this side that were queued to leave.
  public package(set) var responsesSent: UInt64 = 0
  /// Requests of the peer that were refused without calling a handler.
  public package(set) var refused: UInt64 = 0
  /// Pushes that arrived.
  public package(set) var pushesReceived: UInt64 = 0
  /// Pushes that were queued to leave.
  public package(set) var pushesSent: UInt64 = 0
  /// Pushes that had to wait for room.
  public package(set) var pushesWaited: UInt64 = 0
  /// Pushes that waited and were not sent: cancelled, past their deadline, or lost with their
  /// connection.
  public package(set) var pushesGivenUp: UInt64 = 0
  /// Pushes that could not even wait: too many did, or the caller asked not to.
  public package(set) var pushesTurnedAway: UInt64 = 0
  /// Broadcasts that passed a connection over, since it was above its high-water mark or does not
  /// accept bodies of their size.
  public package(set) var broadcastsSkipped: UInt64 = 0
  /// Times that the bytes waiting for a peer reached the high-water mark.
  public package(set) var highWaterEvents: UInt64 = 0
  /// Pings sent, heartbeats included.
  public package(set) var pingsSent: UInt64 = 0
  /// Pings received.
  public package(set) var pingsReceived: UInt64 = 0
  /// Times that nothing had been read for so long that a sign of life was asked for.
  public package(set) var suspicions: UInt64 = 0
  /// Those of them that requests without an answer were the reason for, before the interval was
  /// over.
  public package(set) var earlySuspicions: UInt64 = 0
  /// Times that this process, or its loop, had stood still for so long that timers came far too
  /// late.
  public package(set) var pauses: UInt64 = 0
  /// Cancels sent.
  public package(set) var cancelsSent: UInt64 = 0
  /// Cancels received.
  public package(set) var cancelsReceived: UInt64 = 0
  /// Cancels for requests that were unknown or had ended, and in a dialect responses to such:
  /// dropped.
  public package(set) var droppedUnknownSerials: UInt64 = 0
  /// Pongs without a ping: dropped.
  public package(set) var droppedPongs: UInt64 = 0
  /// Frames of the kinds that are read and ignored: dropped.
  public package(set) var droppedIgnorable: UInt64 = 0
  /// Answers that were not owed any more, or that a dialect has no word for: dropped.
  public package(set) var droppedResponses: UInt64 = 0
  /// In a dialect with delimiters, packets that were damaged: dropped.
  public package(set) var damagedPackets: UInt64 = 0
  /// Messages in fragments that were given up, since the next one had not come in time.
  public package(set) var stalledMessages: UInt64 = 0
  /// Requests that were refused since all connections together held as much as the server may.
  public package(set) var refusedForMemory: UInt64 = 0
  /// Requests that were refused since their bodies were not the messages that their handlers take.
  public package(set) var undecodable: UInt64 = 0
  /// Requests that were handed to handlers, those in `undecodable` included.
  public package(set) var handled: UInt64 = 0
  /// Those of them that were given up before their handlers were called.
  public package(set) var handlersSkipped: UInt64 = 0
  /// Requests whose handlers were cancelled by the peer.
  public package(set) var handlersCancelled: UInt64 = 0
  /// Requests whose handlers were cancelled since their connection ended.
  public package(set) var handlersAbandoned: UInt64 = 0
  /// Requests refused or given up since their deadline had passed.
  public package(set) var handlersLate: UInt64 = 0
  /// Handlers that failed with an error of their own.
  public package(set) var handlersFailed: UInt64 = 0
  /// Connections that ended, by the kind of their `CloseReason`; among them `stalledPeer`, which
  /// took no byte for too long, and `unreadOutput`, for which too many bytes waited.
  public package(set) var endings: [CloseReason.Kind: UInt64] = [:]
  /// Connections that ended because the peer broke a rule, by rule.
  public package(set) var violations: [Violation.Rule: UInt64] = [:]

  /// Connections whose peer was given up since it was silent for longer than the heartbeat allows.
  public var heartbeatsLost: UInt64 { endings[.heartbeatLost] ?? 0 }

  /// Makes counters that are all zero.
  package init() {}

  /// Adds what one connection and its handlers counted.
  package mutating func add(_ connection: FrameCounters, _ responder: ResponderCounters) {
    bytesReceived += connection.bytesReceived
    bytesSent += connection.bytesSent
    framesReceived += connection.framesReceived
    requestsSent += connection.requestsSent
    requestsReceived += connection.requestsReceived
    responsesReceived += connection.responsesReceived
    responsesSent += connection.responsesSent
    refused += connection.refused
    pushesReceived += connection.pushesReceived
    pushesSent += connection.pushesSent
    broadcastsSkipped += connection.broadcastsSkipped
    highWaterEvents += connection.highWaterEvents
    pingsSent += connection.pingsSent
    pingsReceived += connection.pingsReceived
    suspicions += connection.suspicions
    earlySuspicions += connection.earlySuspicions
    pauses += connection.pauses
    cancelsSent += connection.cancelsSent
    cancelsReceived += connection.cancelsReceived
    droppedUnknownSerials += connection.droppedUnknownSerials
    droppedPongs += connection.droppedPongs
    droppedIgnorable += connection.droppedIgnorable
    droppedResponses += connection.droppedResponses + responder.droppedAnswers
    damagedPackets += connection.damagedPackets
    stalledMessages += connection.stalledMessages
    refusedForMemory += responder.outOfMemory
    undecodable += responder.undecodable
    handlersSkipped += responder.skipped
    handled += responder.handled
    handlersCancelled += responder.cancelled
    handlersAbandoned += responder.abandoned
    handlersLate += responder.late
    handlersFailed += responder.failed
  }

  /// Adds what became of the pushes of one side that had to wait.
  package mutating func add(_ pushes: PushQueueCounters) {
    pushesWaited += pushes.waited
    pushesGivenUp += pushes.givenUp
    pushesTurnedAway += pushes.turnedAway
  }

  /// Counts the end of a connection.
  package mutating func ended(_ reason: CloseReason) {
    endings[reason.kind, default: 0] += 1
    if case .violation(let violation) = reason { violations[violation.rule, default: 0] += 1 }
  }

  /// Counts a handler that returned, or was skipped, after its connection had ended.
  package mutating func handlerReturnedLate(wasSkipped: Bool) {
    if wasSkipped { handlersSkipped += 1 } else { droppedResponses += 1 }
  }

  /// Adds what another set of connections counted.
  package static func += (lhs: inout ConnectionCounters, rhs: ConnectionCounters) {
    lhs.bytesReceived += rhs.bytesReceived
    lhs.bytesSent += rhs.bytesSent
    lhs.framesReceived += rhs.framesReceived
    lhs.requestsSent += rhs.requestsSent
    lhs.requestsReceived += rhs.requestsReceived
    lhs.responsesReceived += rhs.responsesReceived
    lhs.responsesSent += rhs.responsesSent
    lhs.refused += rhs.refused
    lhs.pushesReceived += rhs.pushesReceived
    lhs.pushesSent += rhs.pushesSent
    lhs.pushesWaited += rhs.pushesWaited
    lhs.pushesGivenUp += rhs.pushesGivenUp
    lhs.pushesTurnedAway += rhs.pushesTurnedAway
    lhs.broadcastsSkipped += rhs.broadcastsSkipped
    lhs.highWaterEvents += rhs.highWaterEvents
    lhs.pingsSent += rhs.pingsSent
    lhs.pingsReceived += rhs.pingsReceived
    lhs.suspicions += rhs.suspicions
    lhs.earlySuspicions += rhs.earlySuspicions
    lhs.pauses += rhs.pauses
    lhs.cancelsSent += rhs.cancelsSent
    lhs.cancelsReceived += rhs.cancelsReceived
    lhs.droppedUnknownSerials += rhs.droppedUnknownSerials
    lhs.droppedPongs += rhs.droppedPongs
    lhs.droppedIgnorable += rhs.droppedIgnorable
    lhs.droppedResponses += rhs.droppedResponses
    lhs.damagedPackets += rhs.damagedPackets
    lhs.stalledMessages += rhs.stalledMessages
    lhs.refusedForMemory += rhs.refusedForMemory
    lhs.undecodable += rhs.undecodable
    lhs.handlersSkipped += rhs.handlersSkipped
    lhs.handled += rhs.handled
    lhs.handlersCancelled += rhs.handlersCancelled
    lhs.handlersAbandoned += rhs.handlersAbandoned
    lhs.handlersLate += rhs.handlersLate
    lhs.handlersFailed += rhs.handlersFailed
    lhs.endings.merge(rhs.endings, uniquingKeysWith: +)
    lhs.violations.merge(rhs.violations, uniquingKeysWith: +)
  }
}
