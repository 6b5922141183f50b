// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// The environment of an event loop: the kernel, or a simulated network.
///
/// The client and the server reach their environment only through this interface and cannot tell
/// which one it is. Every call is made on the loop, except `wake`.
package protocol LoopDriver: AnyObject {
  /// The current monotonic time.
  var now: LinkInstant { get }
  /// The time of the calendar, in nanoseconds since 1970. It can jump: only the dates of
  /// certificates are compared with it, and recordings and numbers of broadcasts begin with it.
  var unixNanoseconds: Int64 { get }
  /// Waits for readiness until `deadline` (nil: forever; an instant in the past: not at all) or
  /// until `wake`, and delivers it.
  func wait(until deadline: LinkInstant?)
  /// Ends the current or the next `wait`. Can be called from any thread.
  func wake()
  /// Yields to other threads; false if there are none that matter.
  func letOthersRun() -> Bool
  /// The number of involuntary context switches of the calling thread; nil if not known.
  var preemptions: Int? { get }
  /// Starts to connect. The transport becomes ready for writing when the connect has completed, and
  /// `finishConnecting` then returns the result.
  func connect(to address: SocketAddress, options: SocketOptions) throws(SocketError)
    -> any Transport
  /// Binds and listens.
  func listen(on address: SocketAddress, options: SocketOptions) throws(SocketError)
    -> any TransportListener
  /// Looks a name up without blocking the loop. `completion` runs once on the loop, unless the loop
  /// is shut down or the look-up withdrawn first. Literal addresses need no look-up.
  ///
  /// Look-ups that no name server answers can hold all threads that look up, so that others wait:
  /// withdraw look-ups that are not needed any more.
  func resolve(
    host: String,
    port: UInt16,
    for owner: LookUpOwner,
    completion: @escaping @Sendable (Result<[SocketAddress], ResolveError>) -> Void
  )
  /// Withdraws the look-ups of an owner that have no result yet. A completion may still run if its
  /// look-up has already begun.
  func withdrawLookUps(of owner: LookUpOwner)
  /// Runs work that may block off the loop; a simulation runs it at once.
  func offload(_ work: @escaping @Sendable () -> Void)
  /// Records that `resident` lives on the loop, without keeping it alive; only a simulation does
  /// so. Can be called from any thread.
  func hosts(_ resident: any LoopResident)
  /// Returns the next 64 random bits.
  func nextRandom() -> UInt64
  /// Releases everything, at the end of the loop's life.
  func close()
}

extension LoopDriver {
  /// The time of the calendar, in seconds since 1970.
  package var unixTime: Int64 { unixNanoseconds / 1_000_000_000 }
  package func hosts(_ resident: any LoopResident) {}
}

/// An object of a loop that can say what it waits for. A simulation asks when it cannot go on.
package protocol LoopResident: AnyObject {
  /// The operations that have not ended, a line each. Called on the loop, between its turns.
  var unfinished: [String] { get }
}

/// Identifies the owner of look-ups. Owners take turns, so that none delays another for long.
package final class LookUpOwner: Sendable {
  package init() {}
}
