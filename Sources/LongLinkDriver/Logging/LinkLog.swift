// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport
package import Logging

/// The log of one link: its lines say whose connection it is.
package struct LinkLog {
  let log: PeerLog
  let loop: EventLoop
  let peer: SocketAddress?
  /// The group of addresses whose share the lines count for; nil for none.
  let group: SocketAddress.Group?
  /// The key and number that identify the connection in the owner's logs, if any.
  let label: (key: String, number: UInt64)?
  /// The name of a short link's way, for errors and logs; nil on a long link.
  let way: String?

  /// Writes a line; each message is rate-limited, and each constant `kind` of it by itself.
  package func callAsFunction(
    _ level: Logger.Level, _ message: StaticString, kind: LineKind = .usual,
    _ metadata: @autoclosure () -> Logger.Metadata = [:]
  ) {
    log.log(level, message, kind: kind, of: group, at: loop.now) {
      metadata().merging(identity) { told, _ in told }
    }
  }

  /// The fields that identify the connection.
  private var identity: Logger.Metadata {
    var identity: Logger.Metadata = [
      "peer": "\(peer.map(String.init(describing:)) ?? "unknown")"
    ]
    if let label { identity[label.key] = "\(label.number)" }
    if let way { identity["way"] = "\(way)" }
    return identity
  }
}
