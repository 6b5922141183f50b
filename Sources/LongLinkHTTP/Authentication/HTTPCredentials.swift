// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import Foundation
internal import LongLinkTransport
internal import Synchronization

/// A name and a password that answer challenges, and what servers have asked for so far.
///
/// Keep one value for all requests of a user: requests after the first then need no challenge. It
/// may be used from any thread.
public final class HTTPCredentials: Sendable {
  /// What is known about one origin.
  private enum Session {
    case basic
    case digest(DigestSession)
  }

  /// The most origins that are remembered.
  private static let mostOrigins = 64

  /// Tells one value from another, also when it is gone.
  let number = UniqueNumber.next()
  private let user: String
  private let password: String
  private let allowsBasic: Bool
  private let allowsDigest: Bool
  private let sessions = Mutex<[String: Session]>([:])

  /// Makes credentials, which answer challenges of both kinds, or of one.
  ///
  /// Basic sends the password itself, in a form that everybody can read; Digest sends a hash of the
  /// name, the password and the challenge. Without Basic, a server that asks for nothing else gets
  /// no answer.
  public init(
    user: String, password: String, allowsBasic: Bool = true, allowsDigest: Bool = true
  ) {
    self.user = user
    self.password = password
    self.allowsBasic = allowsBasic
    self.allowsDigest = allowsDigest
  }

  /// Whether the first request to an origin may be challenged.
  func mayBeChallenged(by origin: String) -> Bool {
    sessions.withLock(of: self) { $0[origin] == nil }
  }

  /// The field for a request to an origin that has challenged before; nil for any other.
  func answer(_ method: HTTPMethod, _ address: HTTPAddress) -> String? {
    sessions.withLock(of: self) { sessions in
      switch sessions[address.origin] {
      case nil: return nil
      case .basic: return HTTPCredentials.basic(user, password)
      case .digest(var session):
        let answer = session.answer(
          method, address.target, user: user, password: password,
          clientNonce: HTTPCredentials.clientNonce())
        sessions[address.origin] = .digest(session)
        return answer
      }
    }
  }

  /// Takes the strongest challenge that can be answered. Returns false if there is none, or if it
  /// says that the last answer was wrong.
  func accept(
    _ challenges: [Challenge], from origin: String, answered last: String?
  ) -> Bool {
    let digests = allowsDigest ? challenges.compactMap(Offer.init) : []
    let best = digests.first { $0.session.algorithm == .sha256 } ?? digests.first
    let wasDigest = last?.hasPrefix("Digest ") == true
    let hasBasic = allowsBasic && challenges.contains { $0.scheme == "basic" }
    let chosen: Session
    if let best {
      // The same question again, and not because the nonce was too old.
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

  /// What none of the challenges leaves to answer; nil if one can be answered, or if there is none.
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

  /// A new nonce of the server for the next requests.
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

  /// Whether the last answer used what was known from before, and so was not yet tried with this
  /// question's nonce and realm.
  private func isOld(_ last: String?, _ session: DigestSession) -> Bool {
    // A first answer to a nonce has the count 1: only then was the password itself rejected.
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

/// A challenge of Digest that can be answered.
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
