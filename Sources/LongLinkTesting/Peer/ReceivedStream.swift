// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// What a scripted peer has received of one stream: items, their end, credit and a cancel.
///
/// A scripted server has one for each request that opens a stream. Each peer also has one for each
/// other serial for which an item, an end or credit arrived, such as the serials of its own
/// requests.
public struct ReceivedStream: Hashable, Sendable {
  /// The number of the connection that carried the stream, from 1.
  public let connection: Int
  /// The serial of the request.
  public let serial: UInt32
  /// The type of the request; nil if this peer sent the request, or if it did not arrive.
  public internal(set) var type: MessageType?
  /// The whole items, in the order of arrival, with fragments joined.
  public internal(set) var items: [[UInt8]] = []
  /// The credit that the received items have used, including an unfinished item's, in bytes.
  public internal(set) var creditUsed = 0
  /// Whether the items have ended.
  public internal(set) var hasEnded = false
  /// The first credit in the request's metadata, in bytes; nil if there is none.
  public internal(set) var firstCredit: UInt32?
  /// The further grants of credit, in bytes, in the order of arrival.
  public internal(set) var grants: [UInt32] = []
  /// Whether the request was cancelled.
  public internal(set) var isCancelled = false

  /// All credit that the other side has granted, in bytes.
  public var creditGranted: Int {
    Int(firstCredit ?? 0) + grants.reduce(0) { $0 + Int($1) }
  }
}

extension PeerRecord {
  /// Finds a stream by the serial of its request, by default on the first connection.
  public func stream(_ serial: UInt32, on connection: Int = 1) -> ReceivedStream? {
    streamIndices[StreamKey(connection: connection, serial: serial)].map { streams[$0] }
  }

  /// The streams whose requests have one type, in the order of arrival.
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
