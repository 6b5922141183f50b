// SPDX-License-Identifier: Apache-2.0

import LongLinkDriver
import LongLinkCore
import LongLinkTransport

extension ClientCore {
  /// Passes a push of the server on to watchers and subscribers.
  func publish(_ push: Push) {
    hub.publish(push, isUsed: watchers.received(push))
  }

  var pushesIfAny: PushQueue? { pushes }

  func wayOfPush(_ type: MessageType) throws(LongLinkError) -> (PushQueue, Link) {
    guard closing == nil else { throw LongLinkError(.closed, doing: .push(type)) }
    guard configuration.hasLongLink else {
      throw LongLinkError(
        .unsupported, doing: .push(type),
        detail: "pushes go over the long link, which is not among the ways of this client")
    }
    guard let link = requests.current else {
      if machine.link.state == .idle { start() }
      throw notConnected(.push(type))
    }
    return (pushes, link)
  }

  func resumeSending(_ link: Link) {
    guard requests.isCurrent(link) else { return }
    link.shareRoom(requests, pushes)
    if closing != nil { finishClosingIfDone() }
  }

  /// Sends the waiting pushes over the current link. Without one, fails them as a new push would
  /// fail.
  func updateWaitingPushes(_ reason: CloseReason) {
    guard pushes.count > 0 else { return }
    if let link = requests.current, link.isOpen {
      pushes.pump(over: link)
    } else {
      pushes.failAll { operation in
        .lost(reason, delivery: .notSent, doing: operation, peer: nil)
      }
    }
  }
}
