// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// The reason why a simulation could not finish its body.
public struct SimulationError: Error, Hashable, Sendable {
  /// The kind of failure. Later versions may add codes.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    private enum Name: String {
      case stuck
      case timeLimit
      case busy
    }

    private let name: Name

    /// No event is left, and the body still waits: for a response that never comes, or for work
    /// from outside the simulation, which did not come within
    /// ``Simulation/Configuration/foreignGrace`` (5 seconds of real time by default).
    public static let stuck = Code(name: .stuck)
    /// The body needed more virtual time than ``Simulation/Configuration/timeLimit``.
    public static let timeLimit = Code(name: .timeLimit)
    /// Loops took more turns than ``Simulation/Configuration/turnLimit`` while virtual time stood
    /// still: some code wakes itself endlessly.
    public static let busy = Code(name: .busy)

    /// The code's name.
    public var description: String { name.rawValue }
  }

  /// The kind of failure.
  public let code: Code
  /// The virtual time of the failure.
  public let time: LinkInstant
  /// The file in which the body waited, as its module and name, like `#fileID`.
  ///
  /// If exactly one wait of the body is known, this is its file. If the body has no known wait, and
  /// exactly one of the other tasks has (sleeps aside), it is the file of that wait. Otherwise it
  /// is the file of the call of `run`. Known waits are ``Simulation/sleep(for:fileID:line:)`` and
  /// those of ``SimulatedServer`` and ``SimulatedClient``. A test can record its issue at this
  /// place.
  public var fileID: String { place.fileID }
  /// The number of the line in ``fileID`` at which the body waited, from 1.
  public var line: Int { place.line }
  package let place: SourcePlace
  /// A description of the simulation at ``time``, on several lines: the waits of tasks and their
  /// places, the requests, streams and handlers that have not ended, loops with their timers,
  /// connections, and the last events.
  public let state: String
}

extension SimulationError: CustomStringConvertible {
  /// The place, the failure and the state, on several lines.
  public var description: String {
    let reason =
      switch code {
      case .stuck: "the simulation is stuck: no event is left, and the body still waits"
      case .timeLimit: "the simulation ran out of virtual time"
      default: "the simulation is endlessly busy at one instant of virtual time"
      }
    return "\(place): \(reason) (at \(time))\n\(state)"
  }
}
