// SPDX-License-Identifier: Apache-2.0

package import LongLinkTransport

/// A part of the application that works while a server runs, beside its handlers.
package protocol ServerService: Sendable {
  /// The server is about to listen. Called on its first loop.
  func serverStarted(on loop: EventLoop)
  /// All connections have ended. The loop is the same, and still runs.
  func serverStopped(on loop: EventLoop) async
}
