// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore
package import LongLinkDriver
package import LongLinkTransport

/// The configuration of what keeps the records of requests that run once. The product LongLinkOnce
/// makes it.
package protocol OnceProvider: Sendable {
  /// Throws `invalidConfiguration` if a value is out of range.
  func validate() throws(LongLinkError)
  /// Begins for a server that is about to listen, on one of its loops.
  func start(on loop: EventLoop, log: PeerLog) async throws(LongLinkError) -> any OnceKeeper
}

/// What keeps the records of one server, on all its loops. Used on any thread.
package protocol OnceKeeper: Sendable {
  /// What a client is told about its keys; nil if it has shown neither a principal nor a
  /// `client_id`, so that the keeper could not tell its keys from those of others.
  func welcome(
    principal: String?, clientID: [UInt8]?, at now: LinkInstant
  ) -> (client: any OnceClient, terms: OnceTerms)?
  /// Waits until no handler of such a request runs any more, for a time in nanoseconds at most.
  /// Then cancels those that do, and returns their number.
  func drain(within time: Int64, on loop: EventLoop) async -> Int
  /// Ends `drain` at once, also if it has not begun yet.
  func hurryDrain()
  /// The handlers on a loop that have not returned, and whose connections have ended, a line each;
  /// on that loop.
  func unfinished(on loop: EventLoop) -> [String]
  /// Adds what it counts.
  func count(in counters: inout ServerCounters)
}
