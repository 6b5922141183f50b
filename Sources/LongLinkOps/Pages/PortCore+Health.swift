// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkServer
internal import NIOHTTP1

/// Whether the server works, as supervisors and balancers ask.
extension PortCore {
  private struct Liveness: Encodable {
    let live: Bool
    var loops: [LoopState]?
  }

  struct LoopState: Encodable {
    let loop: Int
    let live: Bool
    let ranMsAgo: Int64
    /// The route whose handler runs on the loop now.
    let blockedBy: Nullable<String>
  }

  private struct Readiness: Encodable {
    let ready: Bool
    var reasons: [String]?
  }

  func liveness(isTrusted: Bool, _ reply: @escaping (PortAnswer) -> Void) {
    pingLoops { answers in
      let isLive = answers.allSatisfy(\.isLive)
      let loops = self.loopStates(answers)
      reply(
        .json(
          Liveness(live: isLive, loops: isTrusted ? loops : nil),
          isLive ? .ok : .serviceUnavailable))
    }
  }

  /// The states of the loops, some of which have answered.
  func loopStates(_ answers: [LoopAnswer]) -> [LoopState] {
    answers.map { answer in
      let courier = answer.courier
      return LoopState(
        loop: courier.index, live: answer.isLive, ranMsAgo: courier.silence,
        blockedBy: Nullable(answer.isLive ? nil : courier.handler.map { name(of: $0) }))
    }
  }

  func readiness(isTrusted: Bool, _ reply: @escaping (PortAnswer) -> Void) {
    pingLoops { answers in
      let reasons = self.objections(answers)
      reply(
        .json(
          Readiness(ready: reasons.isEmpty, reasons: isTrusted ? reasons : nil),
          reasons.isEmpty ? .ok : .serviceUnavailable))
    }
  }

  /// Why the server should get no new clients; empty if it should.
  func objections(_ answers: [LoopAnswer]) -> [String] {
    var reasons: [String] = []
    switch server.standing {
    case .starting: reasons.append("starting")
    case .ready: break
    case .draining: reasons.append("draining")
    }
    if !answers.allSatisfy(\.isLive) { reasons.append("loops") }
    if server.isFull { reasons.append("limit") }
    return reasons
  }
}
#endif
