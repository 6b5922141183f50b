// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import NIOHTTP1

/// An answer without frames, to a request that is not a request of the short link.
struct GatewayRefusal {
  let status: HTTPResponseStatus
  let text: String
  var headers: [(String, String)] = []

  /// The content type of bodies with frames.
  static let contentType = "application/vnd.longlink"

  private init(_ status: HTTPResponseStatus, _ text: String, _ headers: [(String, String)] = []) {
    self.status = status
    self.text = text + "\n"
    self.headers = headers
  }

  /// The refusal of a server that is draining or has stopped.
  static let unavailable = GatewayRefusal(
    .serviceUnavailable, "The server takes no requests now.", [("Retry-After", "1")])

  /// The path of a request's target, which may be a whole URL (RFC 9112, section 3.2.2).
  private static func path(of target: String) -> Substring {
    var path = target[...]
    for scheme in ["http://", "https://"] where path.lowercased().hasPrefix(scheme) {
      path = path.dropFirst(scheme.utf8.count).drop { $0 != "/" }
    }
    return path.prefix { $0 != "?" }
  }

  /// Makes the refusal for a request that is not one of the short link; nil if it is.
  init?(of head: HTTPRequestHead, path: String) {
    guard head.uri.utf8.count <= HTTPGatewayConfiguration.longestTarget else {
      self = GatewayRefusal(.uriTooLong, "The URL is too long.")
      return
    }
    let codings = head.headers[canonicalForm: "Transfer-Encoding"].map { $0.lowercased() }
    guard codings.allSatisfy({ $0 == "chunked" }) else {
      self = GatewayRefusal(.notImplemented, "The gateway knows no transfer coding but chunked.")
      return
    }
    guard Self.path(of: head.uri) == path else {
      self = GatewayRefusal(.notFound, "There is nothing here. The short link is at \(path).")
      return
    }
    guard head.method == .POST else {
      self = GatewayRefusal(
        .methodNotAllowed, "The short link takes POST alone.", [("Allow", "POST")])
      return
    }
    let types = head.headers["Content-Type"]
    let media = types.first?.prefix { $0 != ";" }.lowercased() ?? ""
    guard types.count == 1, media.split(whereSeparator: \.isWhitespace) == [Self.contentType[...]]
    else {
      self = GatewayRefusal(
        .unsupportedMediaType, "The short link takes the content type \(Self.contentType).")
      return
    }
    guard head.headers["Content-Encoding"].isEmpty else {
      self = GatewayRefusal(.unsupportedMediaType, "The short link takes no compressed bodies.")
      return
    }
    return nil
  }
}
#endif
