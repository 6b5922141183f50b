// SPDX-License-Identifier: Apache-2.0

#if HTTP
internal import AsyncHTTPClient
internal import Foundation

/// Dates of header fields, in seconds since 1970.
enum HTTPDate {
  static var now: Int64 { Int64(Date().timeIntervalSince1970) }

  /// The value of the field `Date`; nil if it cannot be read.
  static func read(_ text: String) -> Int64? {
    // async-http-client reads the dates of cookies, which have the same forms.
    HTTPClient.Cookie(header: "a=b; Expires=\(text)", defaultDomain: "")?.expires
      .map { Int64($0.timeIntervalSince1970) }
  }
}
#endif
