// SPDX-License-Identifier: Apache-2.0

package import LongLinkTransport

/// A part of the application that works while a server runs, beside its handlers.
package protocol ServerService: Sendable {
  /// Called when the server is about to listen, on its first loop.
  func serverStarted(on loop: EventLoop)
  /// Called when all connections have ended. The loop is the same as at the start, and still runs.
  func serverStopped(on loop: EventLoop) async
}
