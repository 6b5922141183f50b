// SPDX-License-Identifier: Apache-2.0

#if HTTP

/// How a request proves who sends it. Only the origin of the request's URL gets the proof: a
/// redirect to another origin drops it.
public struct HTTPAuthentication: Sendable {
  enum Kind: Sendable {
    case basic(user: String, password: String)
    case bearer(HTTPBearerTokens)
    case challenged(HTTPCredentials)
  }

  let kind: Kind

  /// Sends the name and the password with each request (RFC 7617). Use it only over TLS.
  public static func basic(user: String, password: String) -> HTTPAuthentication {
    HTTPAuthentication(kind: .basic(user: user, password: password))
  }

  /// Sends a token with each request (RFC 6750).
  ///
  /// When the server answers 401, the token is renewed and the request is sent once more, unless
  /// its body cannot be read again.
  public static func bearer(_ tokens: HTTPBearerTokens) -> HTTPAuthentication {
    HTTPAuthentication(kind: .bearer(tokens))
  }

  /// Answers the server's Basic and Digest challenges with a name and a password. Until an origin
  /// has sent its first challenge, it gets neither.
  public static func challenged(_ credentials: HTTPCredentials) -> HTTPAuthentication {
    HTTPAuthentication(kind: .challenged(credentials))
  }

  /// Answers only Digest challenges (RFC 7616), with SHA-256 or MD5.
  ///
  /// Use one value for all requests of a user: it remembers the server's challenge.
  public static func digest(user: String, password: String) -> HTTPAuthentication {
    challenged(HTTPCredentials(user: user, password: password, allowsBasic: false))
  }
}
#endif
