// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import LongLinkCLibrary
internal import LongLinkCore
internal import LongLinkTransport
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// Makes error numbers and texts for short links over HTTP that failed.
enum ShortLinkFailure {
  /// The error number for an answer that carries no frames.
  static let badAnswer = EPROTO

  /// Why an answer cannot carry frames; nil if it can.
  static func objection(to head: HTTPResponseHead) -> String? {
    guard head.status == .ok else {
      let reason = head.status.reasonPhrase.isEmpty ? "" : " \(PeerText(head.status.reasonPhrase))"
      return "the answer was \(head.status.code)\(reason)"
        + (advice[head.status.code].map { ": \($0)" } ?? "; a gateway's answer to a request is 200")
    }
    guard head.headers["Content-Encoding"].isEmpty else {
      return "the answer is compressed, by a proxy: a gateway's never is"
    }
    let type = head.headers["Content-Type"].first ?? ""
    let media = type.prefix { $0 != ";" }.lowercased()
    let isFrames = media.split(whereSeparator: \.isWhitespace) == [HTTPShortLinks.contentType[...]]
    guard !isFrames else { return nil }
    return "the answer is of the type \"\(PeerText(type))\", not \(HTTPShortLinks.contentType):"
      + " something other than a gateway answers at this URL"
  }

  private static let advice: [UInt: String] = {
    let elsewhere = "redirects are not followed; use the URL that it leads to"
    let mayHaveRun = "the request may have run"
    return [
      301: elsewhere, 302: elsewhere, 303: elsewhere, 307: elsewhere, 308: elsewhere,
      401: "set the header Authorization that the server wants",
      403: "the server or a proxy forbids it",
      404: "look at the URL's path; a gateway's is /longlink/v1, without a slash at its end",
      405: "look at the URL's path; something other than a gateway answers here",
      407: "set the proxy's name and password",
      411: "the proxy takes no chunked bodies",
      413: "the proxy takes no bodies of this size; raise its limit (nginx: client_max_body_size)",
      415: "something other than a gateway answers at this URL",
      429: "the proxy or the gateway takes no more requests now",
      502: "the proxy got no answer from the gateway; \(mayHaveRun)",
      503: "the gateway, or a proxy in front of it, takes no requests now; \(mayHaveRun)",
      504: "the proxy waited too long for the gateway; \(mayHaveRun)",
    ]
  }()

  /// The error number and text for an error of the HTTP client.
  static func explain(_ cause: any Error) -> (errno: CInt, text: String) {
    if let error = CauseText.system(cause) {
      let step = cause is NIOConnectionError ? "connect: " : ""
      return (error.errnoCode, step + SocketError.text(of: error.errnoCode))
    }
    let text = CauseText.of(cause, connectTimeout: nil)
    return switch cause {
    case let cause as NIOConnectionError:
      (cause.connectionErrors.isEmpty ? EHOSTUNREACH : ETIMEDOUT, text)
    case let cause as HTTPClientError: (number(of: cause), self.text(of: cause))
    default: (ECONNABORTED, text)
    }
  }

  private static func number(of cause: HTTPClientError) -> CInt {
    switch cause {
    case .connectTimeout, .tlsHandshakeTimeout, .httpProxyHandshakeTimeout, .readTimeout,
      .writeTimeout, .deadlineExceeded, .getConnectionFromPoolTimeout:
      ETIMEDOUT
    case .remoteConnectionClosed, .uncleanShutdown:
      ECONNRESET
    case .proxyAuthenticationRequired, .invalidProxyResponse:
      EACCES
    default:
      ECONNABORTED
    }
  }

  private static func text(of cause: HTTPClientError) -> String {
    switch cause {
    case .connectTimeout: "it could not be connected to in time"
    case .getConnectionFromPoolTimeout:
      "all connections were in use for too long; raise maxConnections"
    case .remoteConnectionClosed: "the connection was closed before the answer was whole"
    case .cancelled, .requestStreamCancelled: "\(PeerText(cause.description))"
    default: CauseText.of(cause, connectTimeout: nil)
    }
  }
}
#endif
