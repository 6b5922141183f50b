// SPDX-License-Identifier: Apache-2.0

import LongLinkTransport

/// A signal that ends a server which runs with `LongLinkServer.run(until:)`.
public struct TerminationSignal: Hashable, Sendable, CustomStringConvertible {
  /// The signal's number, such as 15.
  public let number: Int32
  /// The signal's name, such as `SIGTERM`.
  public let description: String

  private init(_ number: Int32, _ description: String) {
    self.number = number
    self.description = description
  }

  /// What supervisors send, such as systemd and Kubernetes, and `kill` without an option.
  public static let sigterm = TerminationSignal(ProcessSignals.terminate, "SIGTERM")
  /// What a terminal sends at Ctrl-C.
  public static let sigint = TerminationSignal(ProcessSignals.interrupt, "SIGINT")
  /// What a terminal sends at Ctrl-\.
  public static let sigquit = TerminationSignal(ProcessSignals.quit, "SIGQUIT")
  /// What a process gets when its terminal is closed.
  public static let sighup = TerminationSignal(ProcessSignals.hangUp, "SIGHUP")
}
