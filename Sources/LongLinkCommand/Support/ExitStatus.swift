import ArgumentParser
import LongLink

/// The exit codes that scripts rely on.
enum ExitStatus {
  static let failure: Int32 = 1
  static let notConnected: Int32 = 3
  static let deadline: Int32 = 4
  static let rejected: Int32 = 5
  static let damaged: Int32 = 6
  static let lost: Int32 = 7
  static let usage: Int32 = 64

  /// The exit code that tells of an error.
  static func of(_ error: LongLinkError) -> Int32 {
    switch error.code {
    case .connectFailed, .notConnected:
      // A peer that answers the greeting with damage was reached, but does not speak the protocol.
      if case .violation = error.closeReason { damaged } else { notConnected }
    case .deadlineExceeded: deadline
    // A body too large never leaves: the peer has said that it would reject it.
    case .rejected, .tooLarge, .overloaded: rejected
    case .corrupted, .protocolViolation, .decodingFailed: damaged
    case .connectionLost, .closed: lost
    case .invalidConfiguration: usage
    default: failure
    }
  }
}
