// SPDX-License-Identifier: Apache-2.0

package import LongLinkTransport

/// A part of the application that works while a server runs, beside its handlers.
package protocol ServerService: Sendable {
  /// Called when the server is about to listen, on its first loop.
  func serverStarted(on loop: EventLoop)
  /// Called when all connections have ended, also of a start that has failed. The loop is the same
  /// as at the start, and still runs.
  func serverStopped(on loop: EventLoop) async
  /// Called once, when the server was shut down and has ended, also if it was never started or
  /// could not start. The server's own loops do not run any more.
  func serverEnded() async
}

extension ServerService {
  package func serverEnded() async {}
}
