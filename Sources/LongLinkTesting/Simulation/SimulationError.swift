// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// Why a simulation could not be run to the end of its body.
public struct SimulationError: Error, Hashable, Sendable {
  /// What happened; later versions may add codes.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    private enum Name: String {
      case stuck
      case timeLimit
      case busy
    }

    private let name: Name

    /// Nothing is left that could happen, and the body waits: for an answer that never comes, or
    /// for something outside of the simulation, which has had `foreignGrace` (5 seconds of real
    /// time by default) to come.
    public static let stuck = Code(name: .stuck)
    /// The body needed more virtual time than it may have.
    public static let timeLimit = Code(name: .timeLimit)
    /// Work went on and on without the virtual time moving: something wakes itself up for ever.
    public static let busy = Code(name: .busy)

    /// The code's name.
    public var description: String { name.rawValue }
  }

  /// What happened.
  public let code: Code
  /// The virtual time at which it happened.
  public let time: LinkInstant
  /// What was there at that time: loops with what they wait for, streams, and the last events.
  public let state: String
}

extension SimulationError: CustomStringConvertible {
  /// What happened and what was there, over several lines.
  public var description: String {
    let reason =
      switch code {
      case .stuck: "the simulation is stuck: nothing is left that could happen"
      case .timeLimit: "the simulation ran out of virtual time"
      default: "the simulation is busy for ever at one moment of virtual time"
      }
    return "\(reason) (at \(time.sinceStart))\n\(state)"
  }
}

extension LinkInstant {
  /// The instant of a simulation as seconds since its start.
  var sinceStart: String {
    let whole = nanoseconds / 1_000_000_000
    let part = String(nanoseconds % 1_000_000_000)
    return "\(whole).\(String(repeating: "0", count: 9 - part.count))\(part) s"
  }
}
