// SPDX-License-Identifier: Apache-2.0

package import LongLink

/// The exit codes that scripts rely on.
package enum ExitStatus {
  package static let failure: Int32 = 1
  package static let notConnected: Int32 = 3
  package static let deadline: Int32 = 4
  package static let rejected: Int32 = 5
  package static let damaged: Int32 = 6
  package static let lost: Int32 = 7
  package static let notSecure: Int32 = 8
  package static let notAccepted: Int32 = 9
  package static let usage: Int32 = 64

  /// The exit code for an error.
  package static func of(_ error: LongLinkError) -> Int32 {
    switch error.code {
    case .connectFailed, .notConnected:
      // A peer that broke a rule during the greeting was reached, but does not speak the protocol.
      if case .violation = error.closeReason { damaged } else { notConnected }
    case .deadlineExceeded: deadline
    // The deadline has passed in the peer before it did here.
    case .rejected where error.response == .deadlinePassed: deadline
    // A body above the limit that the peer announced is never sent: the peer would reject it.
    case .rejected, .tooLarge, .overloaded: rejected
    case .corrupted, .protocolViolation, .decodingFailed: damaged
    case .connectionLost, .closed: lost
    case .securityFailed: notSecure
    case .notAccepted: notAccepted
    case .invalidConfiguration: usage
    default: failure
    }
  }
}
