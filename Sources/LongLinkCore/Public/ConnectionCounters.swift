// SPDX-License-Identifier: Apache-2.0

/// What one or more connections counted, each number since its beginning.
public struct ConnectionCounters: CounterGroup, Hashable, Sendable {
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

  /// Makes counters that are all zero.
  package init() {}
}
