// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension EventLoop {
  /// Records that the handler of a request begins.
  @inline(__always)
  package func handlerBegins(_ type: MessageType) {
    handler.set(type)
    stallWatch.begins(at: driver.now)
  }

  /// Records that the current handler, if any, has returned or was suspended.
  @inline(__always)
  package func handlerPauses() {
    if stallWatch.isTiming { stallWatch.pauses(handler, at: driver.now) }
  }

  /// Times handlers as after a stall, from a call with true to one with false. Call it on the loop.
  package func timeHandlers(_ isWanted: Bool) { stallWatch.timeHandlers(isWanted, handler) }

  func reportStall() {
    guard configuration.onStall != nil,
      let stall = stallWatch.turnEnds(at: driver.now, last: handler.type)
    else { return }
    configuration.onStall?(name, .nanoseconds(stall.duration), stall.type)
  }
}
