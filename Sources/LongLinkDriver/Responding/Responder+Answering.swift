// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import LongLinkCore

extension Responder {
  /// Responds with what a handler has returned.
  func answer<Body: BodyEncodable>(
    _ request: InboundRequest, _ body: Body, on link: Link
  ) {
    do throws(BodyError) {
      if Body.isMeasuredByEncoding {
        try write(try body.encodedBytes(), request, on: link)
      } else {
        try write(body, request, on: link)
      }
    } catch {
      link.log(
        .error, "A response could not be encoded",
        metadata(request.type, request.serial, ["error": "\(error)"]))
      send(request, on: link, .failed, text("the response could not be encoded", on: link))
    }
  }

  /// What a log line says of a request, with the name of its method if that has one.
  func metadata(
    _ type: MessageType, _ serial: UInt32, _ others: Logger.Metadata
  ) -> Logger.Metadata {
    var metadata = others
    metadata["type"] = "\(type)"
    metadata["serial"] = "\(serial)"
    metadata["method"] = routes.names[type].map { "\($0)" }
    return metadata
  }

  private func write<Body: BodyEncodable>(
    _ body: Body, _ request: InboundRequest, on link: Link
  ) throws(BodyError) {
    let size = try body.encodedByteCount
    guard link.accepts(bodyOf: size) else { return refuse(size, request, on: link) }
    if !link.isNative { try link.validate(body) }
    try link.respond(request.id, count: size, body)
  }

  /// Fails a request whose response is larger than the peer accepts.
  private func refuse(_ size: Int, _ request: InboundRequest, on link: Link) {
    let limit = link.maxBody
    link.log(
      .error, "A response is larger than the peer accepts",
      metadata(request.type, request.serial, ["bytes": "\(size)"]))
    send(
      request, on: link, .failed, text("the response is larger than \(limit) bytes", on: link))
  }
}
