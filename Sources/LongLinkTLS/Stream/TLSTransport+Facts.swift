// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

extension TLSTransport {
  var localAddress: SocketAddress? { below.localAddress }
  var peerAddress: SocketAddress? { below.peerAddress }
  var layer: (any TransportLayer)? { self }
  var isHandshaking: Bool { phase == .handshaking }
  var roundTrip: Int64? { phase == .open ? below.roundTrip : nil }

  /// Made for each call, because most transports are asked at most once.
  var security: ConnectionSecurity? {
    phase == .open ? engine?.security(of: side, verifiesPeer: owner.verifiesPeers) : nil
  }

  var heldBytes: Int {
    guard phase != .closed else { return 0 }
    return input.capacity + output.capacity + (engine?.heldBytes ?? 0)
  }

  func releaseStorage() {
    engine?.releaseBuffers()
  }

  /// The application's bytes that are not acknowledged. The bytes that records add count as
  /// acknowledged last.
  var unacknowledgedBytes: Int {
    requireOpen()
    guard phase == .open else { return written - acknowledged }
    let waiting = output.count + below.unacknowledgedBytes
    acknowledged = max(acknowledged, written - waiting)
    return written - acknowledged
  }

  var hasUnreadBytes: Bool {
    requireOpen()
    return phase == .open && (hasRecord || below.hasUnreadBytes)
  }

  func finishConnecting() throws(SocketError) -> Bool {
    requireOpen()
    if let failure { throw failure }
    return phase == .open
  }
}
