// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkTransport

/// Where the bytes of a read go: into the input of a connection, or into the loop's queue, which is
/// lent to the connection for one read.
///
/// The loop's queue is warm in the processor's cache, and a connection whose input is empty between
/// reads needs no memory of its own.
struct ReadBuffer {
  /// Whether the connection's input is the loop's queue for now.
  private(set) var isLent = false

  /// The largest buffer that a loop keeps for transports with a partial frame.
  private static let largestSpare = 524_288

  /// Prepares the input for a read of this size. `isFresh` says that the connection is not open
  /// yet: such a peer gets no large spare buffer.
  mutating func begin(_ size: Int, into inbox: inout Inbox, isFresh: Bool, on loop: EventLoop) {
    isLent = inbox.input.isEmpty
    if isLent {
      loop.swapReadQueue(with: &inbox.input)
    } else if !isFresh {
      inbox.makeRoom(for: size, with: &loop.spareQueue)
    }
  }

  /// Takes the loop's queue back, and leaves a copy of the unparsed rest. Returns false if it was
  /// not lent.
  mutating func takeBack(from inbox: inout Inbox, on loop: EventLoop) -> Bool {
    guard isLent else { return false }
    isLent = false
    if inbox.input.isEmpty {
      inbox.input.removeAll()
      loop.swapReadQueue(with: &inbox.input)
    } else {
      var rest = inbox.input.detachRest()
      swap(&inbox.input, &rest)
      loop.swapReadQueue(with: &rest)
    }
    return true
  }

  /// Gives the input buffer to the loop if it is large compared with the unparsed rest.
  func releaseRoom(of inbox: inout Inbox, to loop: EventLoop) {
    guard !isLent else { return }
    inbox.input.releaseRoom(to: &loop.spareQueue, upTo: ReadBuffer.largestSpare)
  }
}
