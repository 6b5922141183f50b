// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import Logging

extension Peer {
  /// Logs that a request of the peer was refused before its handler ran. Each response code is a
  /// kind of its own, so that a flood of one does not hide another.
  func logRefusal(
    of type: MessageType, _ serial: UInt32, _ code: ResponseCode,
    _ detail: @autoclosure () -> String, on link: Link
  ) {
    link.log(
      .info, "Refused a request", kind: .code(code),
      details(of: type, serial, code, PeerText(detail())))
  }

  /// Logs that the connection itself refused a request of the peer.
  func logRefusal(of type: MessageType, _ serial: UInt32, _ refusal: Refusal, on link: Link) {
    let settings = link.connection.settings
    logRefusal(of: type, serial, refusal.code, refusal.detail(settings), on: link)
  }

  /// Logs that a request was refused when it was decoded; nothing for any other rejection.
  func logRefusal(
    of request: InboundRequest, by rejection: HandlerRejection, on link: Link
  ) {
    // The peer has cancelled a request whose handler was skipped.
    guard rejection.isRefused, rejection.code != .cancelled else { return }
    logRefusal(
      of: request.type, request.serial, rejection.code,
      String(decoding: rejection.body, as: UTF8.self), on: link)
  }

  /// Logs that a request that is to run once was refused; nothing for any other reply.
  func logRefusal(
    of type: MessageType, _ serial: UInt32, by reply: OnceReply, on link: Link
  ) {
    guard reply.isRefused, reply.code != .cancelled else { return }
    logRefusal(
      of: type, serial, reply.code, String(decoding: reply.body, as: UTF8.self), on: link)
  }

  private func details(
    of type: MessageType, _ serial: UInt32, _ code: ResponseCode, _ detail: PeerText
  ) -> Logger.Metadata {
    var details: Logger.Metadata = [
      "type": "\(type)", "serial": "\(serial)", "code": "\(code)", "detail": "\(detail)",
    ]
    details["method"] = routes.names[type].map { "\($0)" }
    details["principal"] = principalRecord.map { "\(PeerText($0.name))" }
    return details
  }
}
