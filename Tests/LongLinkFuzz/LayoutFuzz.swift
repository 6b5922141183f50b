// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCore
import LongLinkDialects

/// The JSON form: whatever is accepted is the same after it was written and read again.
enum LayoutFuzz {
  static func run(_ bytes: [UInt8]) throws {
    let dialect: FrameDialect
    do {
      dialect = try JSONDecoder().decode(FrameDialect.self, from: Data(bytes))
    } catch is DecodingError {
      return
    }
    let again = try JSONDecoder().decode(
      FrameDialect.self, from: JSONEncoder().encode(dialect))
    try expect(again == dialect, "a dialect has changed on its way through JSON")
    for role in [Role.client, .server] {
      let plan = FramePlan(dialect.layout, from: role)
      let field = dialect.layout.shape(from: role).header.first { $0.meaning == .token }
      let token = [UInt8](repeating: 1, count: field?.width ?? 0)
      _ = try DialectCodec(dialect, role: role, token: token)
      try expect(plan.lengthBias >= 0, "a length counts less than nothing")
    }
  }
}
