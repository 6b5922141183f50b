// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension Link {
  /// The handlers of the peer's requests that have not returned, a line each.
  package var unfinishedHandlers: [String] {
    let state = "has not returned"
    return connection.inbound.handlers.map { describe($0, state) }
      + connection.inbound.outlivedHandlers.map {
        describe($0, state + ", though its request has ended")
      }
  }

  private func describe(_ work: RunningHandler, _ state: String) -> String {
    let type = work.request.type
    let title = work.responder.routes.names[type].map { "\($0) (type \(type))" } ?? "\(type)"
    let origin = peer.map { " from \($0)" } ?? ""
    let progress = work.channel?.progress ?? ""
    return "handler of \(title)\(origin) (serial \(work.request.serial)): \(state)"
      + (progress.isEmpty ? "" : "; " + progress)
  }
}
