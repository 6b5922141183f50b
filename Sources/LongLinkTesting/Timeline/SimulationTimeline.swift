// SPDX-License-Identifier: Apache-2.0

public import LongLinkCore

/// What happened in a simulation, ready to be drawn: processes as lanes, frames between them, and
/// marks for faults, sockets and changes of state.
public struct SimulationTimeline: Sendable {
  /// What a mark tells of.
  enum MarkKind: Sendable {
    /// Something was done to the world.
    case fault
    /// A socket was opened, connected, reset or closed.
    case socket
    /// A client or a server is in another state than before.
    case state
  }

  enum Event: Sendable {
    /// A frame left a lane for another; it has arrived, where that is known, at a time.
    case frame(from: Int, to: Int?, link: Int, label: String, arrival: LinkInstant?)
    /// Something happened on a lane, or to all where there is none.
    case mark(lane: Int?, kind: MarkKind, text: String)
  }

  struct Item: Sendable {
    var time: LinkInstant
    var event: Event
    /// Whether it is a ping or a pong.
    var isHeartbeat = false
  }

  /// The names of the lanes, from left to right.
  let lanes: [String]
  /// In the order of their times.
  let items: [Item]

  /// The part between two instants, both included.
  public func cut(from start: LinkInstant, to end: LinkInstant) -> SimulationTimeline {
    SimulationTimeline(lanes: lanes, items: items.filter { start <= $0.time && $0.time <= end })
  }

  /// The first so many events, and how many were left out.
  public func prefix(_ count: Int) -> (timeline: SimulationTimeline, omitted: Int) {
    let kept = SimulationTimeline(lanes: lanes, items: Array(items.prefix(count)))
    return (kept, items.count - kept.items.count)
  }

  /// The events without pings and pongs, which are most of a quiet time, and how many these were.
  public var withoutHeartbeats: (timeline: SimulationTimeline, omitted: Int) {
    let kept = SimulationTimeline(lanes: lanes, items: items.filter { !$0.isHeartbeat })
    return (kept, items.count - kept.items.count)
  }

  /// How many events it has.
  public var count: Int { items.count }
}
