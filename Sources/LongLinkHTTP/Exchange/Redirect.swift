// SPDX-License-Identifier: Apache-2.0

#if HTTP

/// The target of a redirect, by the rules of this module.
struct Redirect: Equatable {
  /// Why a redirect is not followed.
  enum Refusal: Error, Equatable {
    /// The status is not a redirect that can be followed.
    case status
    case noLocation
    case badLocation(String)
    case tooMany(Int)
    case loop
    /// The redirect leads from https to http.
    case insecure
    /// The body would have to be sent again, but can be read only once.
    case bodyIsGone
  }

  let address: HTTPAddress
  let method: HTTPMethod
  let keepsBody: Bool
  let crossesOrigins: Bool
}

/// The redirects of one exchange.
struct Redirects {
  /// The most redirects of an exchange.
  static let most = 5

  private let limit: Int
  private var count = 0
  private var visited: Set<String> = []

  init(from address: HTTPAddress, _ method: HTTPMethod, limit: Int, cookies: String? = nil) {
    self.limit = min(max(0, limit), Redirects.most)
    visited = [Redirects.key(address, method, cookies)]
  }

  /// Identifies a request, to find loops. With other cookies the answer may differ.
  private static func key(
    _ address: HTTPAddress, _ method: HTTPMethod, _ cookies: String?
  ) -> String {
    "\(method.rawValue) \(address.withoutFragment) \(cookies ?? "")"
  }

  /// Returns the target of a response's redirect. `cookies` returns the cookies for an address.
  mutating func follow(
    _ status: Int, to location: String?, from address: HTTPAddress, _ method: HTTPMethod,
    canSendBodyAgain: Bool, cookies: (HTTPAddress) -> String? = { _ in nil }
  ) throws(Redirect.Refusal) -> Redirect {
    guard [301, 302, 303, 307, 308].contains(status) else { throw .status }
    guard let location else { throw .noLocation }
    guard count < limit else { throw .tooMany(limit) }
    let target: HTTPAddress
    do throws(HTTPAddress.Problem) {
      target = try address.resolving(location)
    } catch {
      throw .badLocation("\(error)")
    }
    if address.isSecure, !target.isSecure { throw .insecure }
    var next = method
    if status == 303, method != .head { next = .get }
    if status == 301 || status == 302, method == .post { next = .get }
    let keepsBody = next == method && status != 303
    if keepsBody, !canSendBodyAgain { throw .bodyIsGone }
    guard visited.insert(Redirects.key(target, next, cookies(target))).inserted else { throw .loop }
    count += 1
    return Redirect(
      address: target, method: next, keepsBody: keepsBody,
      crossesOrigins: target.origin != address.origin)
  }
}

extension Redirect.Refusal: CustomStringConvertible {
  var description: String {
    switch self {
    case .status: "the status is no redirect that can be followed"
    case .noLocation: "the redirect has no Location"
    case .badLocation(let problem): "the redirect's Location cannot be used: \(problem)"
    case .tooMany(0): "redirects are not followed"
    case .tooMany(let limit): "there were more than \(limit) redirects"
    case .loop: "the redirects go in a circle"
    case .insecure: "the redirect leads from https to http"
    case .bodyIsGone: "the body cannot be read again for the redirect"
    }
  }
}
#endif
