// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkSystem
internal import LongLinkCLibrary
package import LongLinkCore

/// An error of the system for an operation on a socket.
package struct SocketError: Error, Equatable, Sendable {
  /// The operation that failed, such as `connect` or `accept`.
  package var operation: String
  /// The system's error number, such as `ECONNREFUSED`.
  package var errno: CInt
  /// The address that the operation was for, if any.
  package var address: SocketAddress?
  /// Why the connection could not be secured, where `errno` is `EPROTO`; nil for another error, and
  /// where it is not known.
  package var securityFailure: SecurityFailure?

  /// Makes an error from the operation, the system's error number and the address.
  package init(
    operation: String, errno: CInt, address: SocketAddress? = nil,
    securityFailure: SecurityFailure? = nil
  ) {
    self.operation = operation
    self.errno = errno
    self.address = address
    self.securityFailure = securityFailure
  }
}

extension SocketError: CustomStringConvertible {
  /// The operation, its address, and the system's text and name for the error; or why the
  /// connection could not be secured.
  package var description: String {
    let place = address.map { "\(operation) \($0)" } ?? operation
    return "\(place): \(securityFailure.map { "\($0)" } ?? reason)"
  }

  /// The system's text and name for the error, and the limit if a path was too long.
  package var reason: String {
    let limit =
      errno == ENAMETOOLONG && address?.family == .unix
      ? ": a path has at most \(SocketAddress.longestUnixPath) bytes" : ""
    return SocketError.text(of: errno) + limit
  }

  /// Returns the system's text and name for an error number: `Connection refused (ECONNREFUSED)`.
  package static func text(of errno: CInt) -> String {
    let text = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      unsafe cll_errno_text(errno, buffer.baseAddress!, buffer.count)
      return unsafe String(cString: buffer.baseAddress!)
    }
    let name = unsafe cll_errno_name(errno).map { unsafe String(cString: $0) } ?? "errno \(errno)"
    return "\(text) (\(name))"
  }
}

/// An error in looking up the addresses of a name.
package struct ResolveError: Error, Equatable, Sendable {
  /// The name that was looked up.
  package var host: String
  /// The system's text for the failure.
  package var reason: String
  /// The system's code for the failure: an `EAI_` constant of `getaddrinfo`, or 0.
  package var code: CInt

  /// Makes an error from the name that was looked up and the system's text and code.
  package init(host: String, reason: String, code: CInt) {
    self.host = host
    self.reason = reason
    self.code = code
  }
}

extension ResolveError: CustomStringConvertible {
  /// The name and the system's text for the failure.
  package var description: String {
    "look up \(host): \(reason)"
  }
}
