// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

extension EventLoop {
  /// Records that the handler of a request begins.
  @inline(__always)
  package func handlerBegins(_ type: MessageType) {
    stallWatch.begins(type, at: driver.now)
  }

  /// Records that the current handler, if any, has returned or was suspended.
  @inline(__always)
  package func handlerPauses() {
    if stallWatch.isTiming { stallWatch.pauses(at: driver.now) }
  }

  func reportStall() {
    guard configuration.onStall != nil, let stall = stallWatch.turnEnds(at: driver.now) else {
      return
    }
    configuration.onStall?(name, .nanoseconds(stall.duration), stall.type)
  }
}
