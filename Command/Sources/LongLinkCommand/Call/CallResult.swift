// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLink
import LongLinkCommandSupport

/// How one request of `longlink call` ended.
struct CallResult: Sendable {
  /// The request's position in the order of sending, from 0.
  let index: Int
  let serial: UInt32?
  let outcome: Result<[UInt8], LongLinkError>
  /// Whether the response is that of an earlier request with the same ticket or key.
  let isReplayed: Bool
  let duration: Duration

  var error: LongLinkError? {
    if case .failure(let error) = outcome { error } else { nil }
  }

  /// The body of the response; empty if there was none.
  var body: [UInt8] {
    switch outcome {
    case .success(let body): body
    case .failure(let error): error.body
    }
  }
}

/// The object that `--json` prints; every key is always there.
private struct CallRecord: Encodable {
  enum CodingKeys: String, CodingKey {
    case serial
    case code
    case refused
    case delivery
    case replayed
    case milliseconds
    case body
  }

  let result: CallResult

  func encode(to encoder: any Encoder) throws {
    var record = encoder.container(keyedBy: CodingKeys.self)
    let code = result.error.map(\.response) ?? .ok
    try record.encode(result.serial, forKey: .serial)
    try record.encode(code?.rawValue, forKey: .code)
    try record.encode(
      code != nil && result.error?.delivery == .refused, forKey: .refused)
    try record.encode(
      (result.error?.delivery ?? .answered).rawValue, forKey: .delivery)
    try record.encode(result.isReplayed, forKey: .replayed)
    try record.encode(result.duration.milliseconds, forKey: .milliseconds)
    try record.encode(Data(result.body).base64EncodedString(), forKey: .body)
  }
}

extension CallResult {
  /// Prints one line of JSON.
  func printJSON() throws {
    try Output.json(CallRecord(result: self))
  }
}
