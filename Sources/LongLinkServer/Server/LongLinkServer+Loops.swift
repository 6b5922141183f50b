// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
import LongLinkDriver
@_spi(Loop) import LongLinkTransport
import Logging

extension LongLinkServer {
  /// Returns the loops of the server, and those that it has made itself, which it has to stop.
  func makeLoops(
    _ names: [MessageType: String]
  ) throws(LongLinkError) -> (all: [EventLoop], own: [EventLoop]) {
    guard givenLoops.isEmpty else { return (givenLoops, []) }
    var made: [EventLoop] = []
    for index in 0..<configuration.loops {
      do throws(SocketError) {
        made.append(
          try EventLoop(
            starting: "longlink-\(index)",
            EventLoop.Configuration(onStall: { [shared] name, time, type in
              shared.turnTookTooLong()
              guard let loop = EventLoop.current else { return }
              shared.log.log(.warning, "An event loop was blocked", at: loop.now) {
                [
                  "loop": "\(name)", "ms": .milliseconds(time.clampedNanoseconds),
                  "type": "\(type.map(String.init(describing:)) ?? "unknown")",
                ].merging(type.flatMap { names[$0] }.map { ["method": "\($0)"] } ?? [:]) { $1 }
              }
            })))
      } catch {
        for loop in made { loop.shutDown() }
        throw LongLinkError(
          .connectFailed, doing: "make an event loop", detail: error.reason,
          systemError: error.errno)
      }
    }
    return (made, made)
  }
}
