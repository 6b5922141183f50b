// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

extension TLSTransport {
  /// What each of OpenSSL's two buffers holds; one of them while a record is partly read.
  private static let recordMemory = 17 * 1_024

  var localAddress: SocketAddress? { below.localAddress }
  var peerAddress: SocketAddress? { below.peerAddress }
  var layer: (any TransportLayer)? { self }
  var isHandshaking: Bool { phase == .handshaking }

  /// Made anew at each call, because most transports are asked once at most.
  var security: ConnectionSecurity? {
    guard phase == .open else { return nil }
    guard let version = engine?.version, let cipher = engine?.cipher else { return nil }
    return ConnectionSecurity(
      version: version, cipher: cipher, applicationProtocol: "longlink/1",
      serverName: (side.isServer ? engine?.serverName ?? nil : side.name).map {
        "\(PeerText($0))"
      },
      peerCertificate: owner.verifiesPeers ? engine?.peer ?? nil : nil,
      isResumed: engine?.isResumed ?? false)
  }

  var heldBytes: Int {
    guard phase != .closed else { return 0 }
    return input.capacity + output.capacity + buffersHeld
  }

  private var buffersHeld: Int {
    if engine?.keepsBuffers == true { return 2 * Self.recordMemory }
    return engine?.hasPending == true ? Self.recordMemory : 0
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
