// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

extension TLSTransport {
  var localAddress: SocketAddress? { below.localAddress }
  var peerAddress: SocketAddress? { below.peerAddress }
  var layer: (any TransportLayer)? { self }
  var isHandshaking: Bool { phase == .handshaking }

  /// Made anew at each call, because most transports are asked once at most.
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

  /// The unacknowledged bytes of the application. What records add is taken to be acknowledged
  /// last.
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
