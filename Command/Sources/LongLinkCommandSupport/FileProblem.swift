// SPDX-License-Identifier: Apache-2.0

import Foundation
import LongLinkTransport

/// Why a file, a folder or a standard stream cannot be used, with the system's reason in place of
/// Foundation's code.
package struct FileProblem: Error, CustomStringConvertible {
  package let description: String

  private init(_ name: String, _ error: any Error) {
    description = "\(name): \(FileProblem.reason(error))"
  }

  /// Runs work on what has this name.
  package static func naming<Value>(_ name: String, _ work: () throws -> Value) throws -> Value {
    do {
      return try work()
    } catch {
      throw FileProblem(name, error)
    }
  }

  private static func reason(_ error: any Error) -> String {
    let known = error as NSError
    if let cause = known.userInfo[NSUnderlyingErrorKey] as? any Error { return reason(cause) }
    guard known.domain == NSPOSIXErrorDomain else { return known.localizedDescription }
    return SocketError.text(of: CInt(known.code))
  }
}
