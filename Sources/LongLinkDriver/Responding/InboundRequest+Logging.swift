// SPDX-License-Identifier: Apache-2.0

public import Logging
internal import LongLinkCore
internal import LongLinkTransport

extension InboundRequest {
  /// The full name of the request's method, such as `chat.Chat/Say`; nil if its route was set with
  /// a message type alone.
  public var method: String? { peer.routes.names[type] }

  /// A logger whose lines say which request they are about.
  ///
  /// It is `configuration.logger` of the server or client whose handler this is, with the metadata
  /// that the library's own lines have: `peer` (an address), `connection`, `serial` and `type`;
  /// also `method` if the route has a name, and on a server `client` (a number) and `principal` if
  /// the client has them. The secret `client_id` is never logged. Each access makes the logger
  /// anew, so keep it if you write several lines.
  ///
  /// Unlike the library's own lines, these have no limit: a line for each request lets clients fill
  /// a disk. Escape and cut what you log of a body.
  public var logger: Logger {
    var logger = peer.log.logger
    logger[metadataKey: "peer"] = "\(peer.address.map(String.init(describing:)) ?? "unknown")"
    logger[metadataKey: "connection"] = "\(peer.connectionID)"
    logger[metadataKey: "serial"] = "\(serial)"
    logger[metadataKey: "type"] = "\(type)"
    logger[metadataKey: "method"] = method.map { "\($0)" }
    logger[metadataKey: "client"] = peer.client.map { "\($0.id)" }
    logger[metadataKey: "principal"] = peer.principalRecord.map { "\(PeerText($0.name))" }
    return logger
  }
}
