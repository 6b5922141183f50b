// SPDX-License-Identifier: Apache-2.0

/// The key of a request, which all of its attempts share.
package enum OnceKey: Hashable, Sendable {
  /// 16 bytes, as many as the library makes: in place, so that a copy counts no references.
  case fixed(UInt64, UInt64)
  /// Another number of bytes, which the application has chosen.
  case variable([UInt8])

  package init(_ bytes: [UInt8]) {
    self = KeySpace(bytes).map { .fixed($0.high, $0.low) } ?? .variable(bytes)
  }

  /// The number of bytes.
  package var count: Int {
    switch self {
    case .fixed: KeySpace.size
    case .variable(let bytes): bytes.count
    }
  }

  package var bytes: [UInt8] {
    switch self {
    case .fixed(let high, let low): KeySpace(high, low).bytes
    case .variable(let bytes): bytes
    }
  }
}
