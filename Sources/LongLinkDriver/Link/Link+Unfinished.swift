// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore

extension Link {
  /// The handlers of the peer's requests that have not returned, and the requests that wait for
  /// the run of their key, a line each.
  package var unfinishedHandlers: [String] {
    connection.inbound.handlers.map { $0.unfinished() }
      + connection.inbound.outlivedHandlers.map { $0.unfinished("though its request has ended") }
  }
}

extension RunningHandler {
  /// A line about the handler, which has not returned, if its link has ended; on the loop.
  package var unfinishedWithoutLink: String? {
    link.isAlive ? nil : unfinished("though its connection has ended")
  }

  fileprivate func unfinished(_ more: String? = nil) -> String {
    let type = request.type
    let title = responder.routes.names[type].map { "\($0) (type \(type))" } ?? "\(type)"
    let origin = link.peer.map { " from \($0)" } ?? ""
    let progress = channel?.progress ?? ""
    let runsOnce = request.onceRun != nil
    let state =
      runsOnce && isDone
      ? "waits for the run of its key"
      : runsOnce && task == nil ? "has not begun: the store was asked" : "has not returned"
    return "\(runsOnce && isDone ? "request" : "handler") of \(title)\(origin) "
      + "(serial \(request.serial)): \(state)" + (more.map { ", \($0)" } ?? "")
      + (progress.isEmpty ? "" : "; " + progress)
  }
}
