// SPDX-License-Identifier: Apache-2.0

/// Counters of one connection since it began, or the totals of several connections.
public struct ConnectionCounters: CounterGroup, Hashable, Sendable {
  /// Bytes read.
  public package(set) var bytesReceived: UInt64 = 0
  /// Bytes written.
  public package(set) var bytesSent: UInt64 = 0
  /// Complete, undamaged frames read.
  public package(set) var framesReceived: UInt64 = 0
  /// Requests sent.
  public package(set) var requestsSent: UInt64 = 0
  /// Requests received.
  public package(set) var requestsReceived: UInt64 = 0
  /// Responses received, late ones and refusals included.
  public package(set) var responsesReceived: UInt64 = 0
  /// Responses queued for sending.
  public package(set) var responsesSent: UInt64 = 0
  /// Requests of the peer that were refused without calling a handler.
  public package(set) var refused: UInt64 = 0
  /// Items received.
  public package(set) var itemsReceived: UInt64 = 0
  /// Items sent or begun to be sent.
  public package(set) var itemsSent: UInt64 = 0
  /// Frames received that grant credit for items of this side.
  public package(set) var creditsReceived: UInt64 = 0
  /// Dropped items of exchanges that had ended.
  public package(set) var lateItems: UInt64 = 0
  /// Dropped frames that end the items of exchanges that had ended.
  public package(set) var lateEnds: UInt64 = 0
  /// Dropped frames with credit for exchanges, or for directions, that had ended.
  public package(set) var lateCredits: UInt64 = 0
  /// Streams that ended because the rest of a large item did not fit into `StreamWindows.total`.
  public package(set) var streamsOverLimit: UInt64 = 0
  /// Pushes received.
  public package(set) var pushesReceived: UInt64 = 0
  /// Pushes queued for sending.
  public package(set) var pushesSent: UInt64 = 0
  /// Pushes that had to wait for room.
  public package(set) var pushesWaited: UInt64 = 0
  /// Pushes that waited and were not sent: cancelled, past their deadline, or lost with their
  /// connection.
  public package(set) var pushesGivenUp: UInt64 = 0
  /// Pushes that failed with `overloaded`: too many waited, or `pushNow` found no room.
  public package(set) var pushesTurnedAway: UInt64 = 0
  /// Broadcasts that skipped a connection because it was above its high-water mark or does not
  /// accept bodies of that size.
  public package(set) var broadcastsSkipped: UInt64 = 0
  /// Times that an outgoing buffer reached its high-water mark.
  public package(set) var highWaterEvents: UInt64 = 0
  /// Pings sent, heartbeats included.
  public package(set) var pingsSent: UInt64 = 0
  /// Pings received.
  public package(set) var pingsReceived: UInt64 = 0
  /// Times that this side suspected a dead peer after silence or missed deadlines, and sent it a
  /// ping if it could.
  public package(set) var suspicions: UInt64 = 0
  /// Times that deadlines without a response made this side suspect a dead peer before the
  /// heartbeat's interval was over. They also count in `suspicions`.
  public package(set) var earlySuspicions: UInt64 = 0
  /// Times that timers fired late by more than 1 s or half of the heartbeat's timeout, whichever is
  /// less, because this process or its loop stood still.
  public package(set) var pauses: UInt64 = 0
  /// Cancels sent.
  public package(set) var cancelsSent: UInt64 = 0
  /// Cancels received.
  public package(set) var cancelsReceived: UInt64 = 0
  /// Times that reading was held because the peer sent more bytes or frames per second than it may.
  public package(set) var rateHolds: UInt64 = 0
  /// The time for which reading was held because the peer sent too fast, in milliseconds.
  public package(set) var rateHeldMilliseconds: UInt64 = 0
  /// Dropped cancels for requests that were unknown or had ended; in a dialect, also dropped
  /// responses to such requests.
  public package(set) var droppedUnknownSerials: UInt64 = 0
  /// Dropped pongs that no ping had asked for.
  public package(set) var droppedPongs: UInt64 = 0
  /// Dropped frames of kinds that receivers ignore.
  public package(set) var droppedIgnorable: UInt64 = 0
  /// Responses of handlers that were dropped, because their requests had ended or because a dialect
  /// cannot express them.
  public package(set) var droppedResponses: UInt64 = 0
  /// Dropped damaged packets, in a dialect with delimiters.
  public package(set) var damagedPackets: UInt64 = 0
  /// Fragmented messages that were given up because their next fragment did not come in time.
  public package(set) var stalledMessages: UInt64 = 0
  /// Requests refused because the server's memory limit was reached.
  public package(set) var refusedForMemory: UInt64 = 0
  /// Requests refused because the access rule of their route did not allow the peer.
  public package(set) var refusedAccess: UInt64 = 0
  /// Requests rejected because their bodies or items did not decode as the message that the handler
  /// takes.
  public package(set) var undecodable: UInt64 = 0
  /// Requests passed to handlers, including those in `undecodable`.
  public package(set) var handled: UInt64 = 0
  /// Requests in `handled` that ended before their handlers were called.
  public package(set) var handlersSkipped: UInt64 = 0
  /// Requests whose handlers were cancelled by the peer.
  public package(set) var handlersCancelled: UInt64 = 0
  /// Requests whose handlers were cancelled because their connection ended.
  public package(set) var handlersAbandoned: UInt64 = 0
  /// Requests whose deadline had passed on arrival, or passed before their handler responded.
  public package(set) var handlersLate: UInt64 = 0
  /// Handlers whose error was logged and answered with 500. A `Rejection`, a `BodyError`, a
  /// `CancellationError` and errors of the handler's own stream do not count.
  public package(set) var handlersFailed: UInt64 = 0

  /// Makes counters that are all zero.
  package init() {}
}

extension ConnectionCounters {
  /// The number of written bytes that the peer's system has acknowledged, if it has not done so for
  /// `unacknowledged` of them.
  func acknowledged(besides unacknowledged: Int) -> UInt64 {
    bytesSent - min(bytesSent, UInt64(clamping: unacknowledged))
  }
}
