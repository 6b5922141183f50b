// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import LongLinkCore
internal import LongLinkTransport
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// The text about an error of async-http-client, of TLS or of a socket.
enum CauseText {
  /// The system call's error behind an error; nil if there is none, the first if there are several.
  static func system(_ cause: any Error) -> IOError? {
    if let error = cause as? IOError { return error }
    guard let error = cause as? NIOConnectionError else { return nil }
    return error.connectionErrors.lazy.compactMap { $0.error as? IOError }.first
  }

  /// The text of an error; empty if the error's code already says everything.
  static func of(_ cause: any Error, connectTimeout: Duration?) -> String {
    if let error = system(cause) { return SocketError.text(of: error.errnoCode) }
    if let failure = SecurityCause.failure(of: cause) { return failure.detail }
    switch cause {
    case is CancellationError: return ""
    case let cause as HTTPClientError: return client(cause, connectTimeout)
    case let cause as NIOConnectionError: return connecting(cause, connectTimeout)
    case let cause as HTTPParserError: return parser(cause)
    default: return "\(PeerText("\(cause)"))"
    }
  }

  private static func client(_ cause: HTTPClientError, _ connectTimeout: Duration?) -> String {
    switch cause {
    case .cancelled, .requestStreamCancelled: ""
    case .alreadyShutdown: "the service was closed"
    case .deadlineExceeded: "the deadline passed"
    case .remoteConnectionClosed: "the server closed the connection"
    case .connectTimeout: "no connection \(within(connectTimeout))"
    case .getConnectionFromPoolTimeout: "no connection became free \(within(connectTimeout))"
    case .tlsHandshakeTimeout: "the TLS handshake did not end in time"
    case .proxyAuthenticationRequired: "the proxy wants a name and a password"
    case .invalidProxyResponse, .httpProxyHandshakeTimeout: "the proxy did not connect"
    default: "\(PeerText(cause.description))"
    }
  }

  private static func within(_ bound: Duration?) -> String {
    bound.map { "within \($0)" } ?? "in time"
  }

  /// The text for a failed connect to all addresses, if no system call says why.
  private static func connecting(
    _ cause: NIOConnectionError, _ connectTimeout: Duration?
  ) -> String {
    guard let first = cause.connectionErrors.first?.error else {
      return "look up \(PeerText(cause.host)): no address was found"
    }
    if case ChannelError.connectTimeout = first { return client(.connectTimeout, connectTimeout) }
    return "\(PeerText("\(first)"))"
  }

  private static func parser(_ cause: HTTPParserError) -> String {
    switch cause {
    case .invalidEOFState: "the connection ended within the answer"
    case .headerOverflow: "the head of the answer is too large"
    default: "the answer is no HTTP: \(PeerText("\(cause)"))"
    }
  }

  /// The reason in a text such as `Error: 268435703 error:100000f7:SSL routines:` followed by
  /// `OPENSSL_internal:WRONG_VERSION_NUMBER at /path/file.cc:231`.
  static func reason(of text: String) -> String {
    let end = text.firstRange(of: " at ")?.lowerBound ?? text.endIndex
    let name = text[..<end].split(separator: ":").last ?? ""
    return String(name.drop { $0 == " " })
  }
}
#endif
