// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// The timeline of a simulation, for drawing: processes as lanes, frames between them, and marks
/// for faults, sockets and changes of state.
package struct SimulationTimeline: Sendable {
  /// The kind of a mark.
  enum MarkKind: Sendable {
    /// A fault began or ended.
    case fault
    /// A socket was opened, connected, reset or closed.
    case socket
    /// A client or a server changed its state.
    case state
  }

  enum Event: Sendable {
    /// A frame was sent from one lane to another. `arrival` is nil if it never arrived.
    case frame(from: Int, to: Int?, link: Int, label: String, arrival: LinkInstant?)
    /// Something happened on a lane, or on all lanes if `lane` is nil.
    case mark(lane: Int?, kind: MarkKind, text: String)
  }

  struct Item: Sendable {
    var time: LinkInstant
    var event: Event
    /// Whether the item is a ping or a pong.
    var isHeartbeat = false
  }

  /// The names of the lanes, from left to right.
  let lanes: [String]
  /// The events in order of time.
  let items: [Item]

  /// Returns the part between two instants, both included.
  package func cut(from start: LinkInstant, to end: LinkInstant) -> SimulationTimeline {
    SimulationTimeline(lanes: lanes, items: items.filter { start <= $0.time && $0.time <= end })
  }

  /// Returns a timeline of the first `count` events, and the number of omitted events.
  package func prefix(_ count: Int) -> (timeline: SimulationTimeline, omitted: Int) {
    let kept = SimulationTimeline(lanes: lanes, items: Array(items.prefix(count)))
    return (kept, items.count - kept.items.count)
  }

  /// The timeline without pings and pongs, which dominate quiet times, and their number.
  package var withoutHeartbeats: (timeline: SimulationTimeline, omitted: Int) {
    let kept = SimulationTimeline(lanes: lanes, items: items.filter { !$0.isHeartbeat })
    return (kept, items.count - kept.items.count)
  }

  /// The number of events.
  package var count: Int { items.count }
}
