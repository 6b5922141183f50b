// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

// The description of a simulation that cannot go on.
extension Simulation {
  func failure(_ code: SimulationError.Code) -> SimulationError {
    var lines = outsideLines(isStuck: code == .stuck)
    lines += waits.lines
    lines += loops.flatMap(unfinished)
    lines += loops.map(summary)
    lines += machines.filter(\.isPaused).map { "frozen: \($0.name)" }
    lines += escapes.map { "escaped: \($0)" }
    lines += openStreams.map { "open: \($0)" }
    lines += openListeners.map { "listening: \($0)" }
    lines += trace.suffix(20).map { "  \($0)" }
    return SimulationError(
      code: code, time: now, place: waits.stuckPlace, state: lines.joined(separator: "\n"))
  }

  /// Notes about clients and servers that seem to run outside the simulation.
  private func outsideLines(isStuck: Bool) -> [String] {
    let found = networkState.outsideClients
    guard found.isEmpty else { return found }
    guard isStuck, openStreams.isEmpty, !openListeners.isEmpty else { return [] }
    return [
      """
      no stream is open: was a client or server made without a loop of the simulation \
      (`on: simulation.mainLoop`)? It then runs outside, and does not reach the others
      """
    ]
  }

  /// The unfinished operations of clients and servers on a loop, a line each; at most a hundred.
  private func unfinished(on loop: EventLoop) -> [String] {
    loop.inspect { loop.simulatedDriver.unfinished.prefix(100) }
      .map { "on loop \"\(loop.name)\": \($0)" }
  }

  private func summary(of loop: EventLoop) -> String {
    var counts: [String: Int] = [:]
    loop.inspect {
      for handler in loop.timerHandlers { counts["\(type(of: handler))", default: 0] += 1 }
    }
    let timers = counts.sorted { $0.key < $1.key }.map { "\($0.value) of \($0.key)" }
      .joined(separator: ", ")
    let first = loop.simulatedDriver.deadline.map { "timers (\(timers)), the first at \($0)" }
    return "loop \"\(loop.name)\": \(loop.hasWork ? "work, " : "")\(first ?? "no timer")"
  }
}
