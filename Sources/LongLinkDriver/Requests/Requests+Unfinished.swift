// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkTransport

extension Requests: LoopResident {
  /// The requests that have not ended, a line each: those of links first, then those that wait.
  package var unfinished: [String] {
    let sent = links.flatMap { link in
      table.carried(by: link.id).map { id, entry in
        let isWritten = entry.position.begin != nil
        let own = link.transport.localAddress.map { " from \($0)" } ?? ""
        let peer = link.peer.map { " to \($0)" } ?? ""
        return describe(
          id, entry.payload, at: own + peer, isWritten ? "sent, without its response" : "queued")
      }
    }
    let reason =
      current == nil
      ? waitReason?().map { ": \($0.detail)" } ?? "" : ", which takes no more requests now"
    let waiting = table.waitingRequests().map { id, entry in
      describe(id, entry.payload, at: "", "waiting for a connection" + reason)
    }
    return sent + waiting
  }

  private func describe(
    _ id: RequestID, _ request: PendingRequest, at peer: String, _ state: String
  ) -> String {
    let kind = request.channel == nil ? "request" : "stream"
    let name = request.channel?.method?.text ?? ""
    let title = name.isEmpty ? "\(request.type)" : "\(name) (type \(request.type))"
    let end = request.deadline == .distantFuture ? "" : ", until \(request.deadline)"
    let progress = request.channel?.progress ?? ""
    return "\(kind) \(title)\(peer) (serial \(id.serial)): \(state)\(end)"
      + (progress.isEmpty ? "" : "; " + progress)
  }
}
