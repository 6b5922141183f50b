// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkCertificates

@testable import LongLinkTLS

/// Hashes of keys, as pins have them.
enum Pins {
  /// Hashes of no key.
  static let none = Data(repeating: 1, count: 32).base64EncodedString()
  static let other = Data(repeating: 2, count: 32).base64EncodedString()

  /// The hash of a certificate's key.
  static func of(_ pair: CertificatePair) throws -> String {
    let context = try TLSPlan.client.context(try TLSFiles([]))
    try context.addIdentity(chain: pair.certificate, key: pair.key, password: nil)
    return Data(context.keyHash(0)).base64EncodedString()
  }
}

extension TLSPlan {
  fileprivate static let client = TLSPlan()
}
