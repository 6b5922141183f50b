// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// What a scripted peer has received of one stream: items, their end, credit and a cancel.
///
/// The record of a scripted peer has one for each received request that opens a stream, and one for
/// each other serial for which an item, an end or credit arrived, such as the serials of the peer's
/// own requests. Damaged frames do not count.
public struct ReceivedStream: Hashable, Sendable {
  /// The number of the connection that carried the stream, from 1.
  public let connection: Int
  /// The serial of the request.
  public let serial: UInt32
  /// The type of the request; nil if this peer sent the request, or if it did not arrive.
  public internal(set) var type: MessageType?
  /// The items that have arrived completely, in the order of arrival.
  public internal(set) var items: [[UInt8]] = []
  /// The credit that the received items have used, in bytes, including the fragments of an
  /// unfinished item. Each frame costs 16 bytes for its header plus the length of its body.
  public internal(set) var creditUsed = 0
  /// Whether an end frame has arrived, with which a requester ends its items. The items of a
  /// responder end with its response, which does not set this.
  public internal(set) var hasEnded = false
  /// The first credit in the metadata of a received request, in bytes; nil if there is none.
  public internal(set) var firstCredit: UInt32?
  /// The credit that each received credit frame granted, in bytes, in the order of arrival.
  public internal(set) var grants: [UInt32] = []
  /// Whether a cancel of the request has arrived.
  public internal(set) var isCancelled = false

  /// The sum of ``firstCredit`` and ``grants``, in bytes. The first credit in a hello or welcome is
  /// not included.
  public var creditGranted: Int {
    Int(firstCredit ?? 0) + grants.reduce(0) { $0 + Int($1) }
  }
}

extension PeerRecord {
  /// Returns the stream with the serial of its request, by default on the first connection; nil if
  /// there is none.
  public func stream(_ serial: UInt32, on connection: Int = 1) -> ReceivedStream? {
    streamIndices[StreamKey(connection: connection, serial: serial)].map { streams[$0] }
  }

  /// Returns the streams whose requests have one type, in the order of their first frames.
  public func streams(of type: MessageType) -> [ReceivedStream] {
    streams.filter { $0.type == type }
  }

  /// Records a frame of a stream. `whole` is the item that the frame completes.
  mutating func note(_ frame: WireFrame, whole: WireFrame?, connection: Int) {
    switch frame.kind {
    case .request:
      guard let whole, let metadata = whole.metadata,
        metadata.items || metadata.credit != nil
      else { return }
      change(whole.serial, connection) { stream in
        stream.type = whole.type
        stream.firstCredit = metadata.credit
      }
    case .item:
      change(frame.serial, connection) { stream in
        stream.creditUsed += frame.creditCost
        if let whole { stream.items.append(whole.body) }
      }
    case .end:
      change(frame.serial, connection) { $0.hasEnded = true }
    case .credit:
      change(frame.serial, connection) { stream in
        if let bytes = frame.grantedCredit { stream.grants.append(bytes) }
      }
    case .cancel where stream(frame.serial, on: connection) != nil:
      change(frame.serial, connection) { $0.isCancelled = true }
    default:
      break
    }
  }

  private mutating func change(
    _ serial: UInt32, _ connection: Int, _ change: (inout ReceivedStream) -> Void
  ) {
    let key = StreamKey(connection: connection, serial: serial)
    let index = streamIndices[key] ?? streams.count
    if index == streams.count {
      streams.append(ReceivedStream(connection: connection, serial: serial))
      streamIndices[key] = index
    }
    change(&streams[index])
  }

  struct StreamKey: Hashable {
    let connection: Int
    let serial: UInt32
  }
}
