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

  /// The signal that `kill` sends by default, as do supervisors such as systemd and Kubernetes.
  public static let sigterm = TerminationSignal(ProcessSignals.terminate, "SIGTERM")
  /// The signal that a terminal sends at Ctrl-C.
  public static let sigint = TerminationSignal(ProcessSignals.interrupt, "SIGINT")
  /// The signal that a terminal sends at Ctrl-\.
  public static let sigquit = TerminationSignal(ProcessSignals.quit, "SIGQUIT")
  /// The signal that a process gets when its terminal is closed.
  public static let sighup = TerminationSignal(ProcessSignals.hangUp, "SIGHUP")
}
