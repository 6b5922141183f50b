// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import Foundation
internal import LongLinkTransport
internal import Synchronization

/// A name and a password that answer challenges, and the last challenges of up to 64 servers.
///
/// Keep one value for all requests of a user: requests after the first then need no challenge. It
/// may be used from any thread.
public final class HTTPCredentials: Sendable {
  /// The challenge of one origin.
  enum Session {
    case basic
    case digest(DigestSession)
  }

  /// The most origins that are remembered.
  private static let mostOrigins = 64

  /// Identifies this value, even after it is gone.
  let number = UniqueNumber.next()
  private let user: String
  private let password: String
  private let allowsBasic: Bool
  private let allowsDigest: Bool
  let sessions = Mutex<[String: Session]>([:])

  /// Makes credentials, which answer Basic and Digest challenges unless one kind is not allowed.
  ///
  /// Basic sends the password itself, in a form that can be decoded without a key; Digest sends a
  /// hash of the name, the password and the challenge. If Basic is not allowed and a server asks
  /// only for Basic, the request fails with `rejected` and the response 401.
  public init(
    user: String, password: String, allowsBasic: Bool = true, allowsDigest: Bool = true
  ) {
    self.user = user
    self.password = password
    self.allowsBasic = allowsBasic
    self.allowsDigest = allowsDigest
  }

  /// Whether the next request to an origin may be challenged: it has not challenged before.
  func mayBeChallenged(by origin: String) -> Bool {
    sessions.withLock(of: self) { $0[origin] == nil }
  }

  /// The value of `Authorization` for a request; nil if its origin has not challenged before.
  func answer(_ method: HTTPMethod, _ address: HTTPAddress) -> String? {
    sessions.withLock(of: self) { sessions in
      switch sessions[address.origin] {
      case nil: return nil
      case .basic: return HTTPCredentials.basic(user, password)
      case .digest(var session):
        let answer = session.answer(
          method, address.target, user: user, password: password,
          clientNonce: HTTPCredentials.clientNonce())
        // Without an answer, the server sends a challenge with another nonce.
        sessions[address.origin] = session.isUsedUp ? nil : .digest(session)
        return answer
      }
    }
  }

  /// Chooses the strongest challenge that can be answered. Returns false if there is none, or if
  /// the challenge means that the last answer was wrong.
  func accept(
    _ challenges: [Challenge], from origin: String, answered last: String?
  ) -> Bool {
    let digests = allowsDigest ? challenges.compactMap(Offer.init) : []
    let best = digests.first { $0.session.algorithm == .sha256 } ?? digests.first
    let wasDigest = last?.hasPrefix("Digest ") == true
    let hasBasic = allowsBasic && challenges.contains { $0.scheme == "basic" }
    let chosen: Session
    if let best {
      // The server asks again, and not because the nonce was too old: the password is wrong.
      if wasDigest, !best.isStale, !isOld(last, best.session) { return false }
      chosen = .digest(best.session)
    } else if hasBasic, last == nil || wasDigest {
      chosen = .basic
    } else {
      return false
    }
    sessions.withLock(of: self) { sessions in
      if sessions[origin] == nil, sessions.count >= HTTPCredentials.mostOrigins { sessions = [:] }
      sessions[origin] = chosen
    }
    return true
  }

  /// The challenge that these credentials cannot answer; nil if one can be answered, or if there is
  /// none.
  func problem(_ challenges: [Challenge]) -> String? {
    var problem: String?
    for challenge in challenges {
      switch challenge.scheme {
      case "digest" where allowsDigest:
        guard let digest = DigestSession.problem(challenge) else { return nil }
        problem = "\(digest), which is not supported"
      case "basic" where allowsBasic: return nil
      default:
        problem = problem ?? "\(PeerText(challenge.scheme)), which these credentials do not answer"
      }
    }
    return problem
  }

  /// Uses a new nonce of a server for the next requests.
  func renew(_ nonce: String, of origin: String) {
    guard nonce.utf8.count <= 4096, !nonce.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F })
    else { return }
    sessions.withLock(of: self) { sessions in
      guard case .digest(var session) = sessions[origin], session.nonce != nonce else { return }
      session.nonce = nonce
      session.count = 0
      sessions[origin] = .digest(session)
    }
  }

  /// Whether the last answer used an earlier nonce, so that the password may still be right.
  private func isOld(_ last: String?, _ session: DigestSession) -> Bool {
    // The first answer to a nonce has the count 1: only then did the server reject the password.
    last?.contains("nc=00000001") == false && session.hasQuality
  }

  static func basic(_ user: String, _ password: String) -> String {
    "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
  }

  private static func clientNonce() -> String {
    var generator = SystemRandomNumberGenerator()
    return [generator.next(), generator.next()].map { (number: UInt64) in
      let digits = String(number, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }
}

/// A Digest challenge that can be answered.
private struct Offer {
  let session: DigestSession
  let isStale: Bool

  init?(_ challenge: Challenge) {
    guard let session = DigestSession(challenge) else { return nil }
    self.session = session
    isStale = challenge.parameters["stale"]?.lowercased() == "true"
  }
}
#endif
