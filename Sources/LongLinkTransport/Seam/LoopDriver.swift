// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// The world that an event loop runs over: the kernel, or a simulated network.
///
/// The client and the server see the world through this seam alone and cannot tell which one it is.
/// Every call is made on the loop, except `wake`.
package protocol LoopDriver: AnyObject {
  /// The monotonic time now.
  var now: LinkInstant { get }
  /// Delivers the readiness that is there, first waiting for some until `deadline` at the latest
  /// (nil: for ever; an instant in the past: not at all) or until `wake`.
  func wait(until deadline: LinkInstant?)
  /// Ends the present or the next `wait`. May be called from any thread.
  func wake()
  /// Lets other threads run for a moment; false where there are none, or none that matter.
  func letOthersRun() -> Bool
  /// How often other threads have taken the processor from the calling one, which the loop runs
  /// on; nil where that cannot be told.
  var preemptions: Int? { get }
  /// Begins to connect. The stream becomes ready for writing when the connect has ended, and
  /// `finishConnecting` then tells how.
  func connect(to address: SocketAddress, options: SocketOptions) throws(SocketError)
    -> any ByteStream
  /// Binds and listens.
  func listen(on address: SocketAddress, options: SocketOptions) throws(SocketError)
    -> any StreamListener
  /// Looks a name up without blocking the loop. `completion` runs on the loop, once, unless the
  /// loop is shut down first. Literal addresses are answered without a look-up.
  func resolve(
    host: String,
    port: UInt16,
    completion: @escaping @Sendable (Result<[SocketAddress], ResolveError>) -> Void
  )
  /// The next 64 random bits.
  func nextRandom() -> UInt64
  /// Releases everything, at the end of the loop's life.
  func close()
}
