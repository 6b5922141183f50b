// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
@_spi(Loop) package import LongLinkTransport

/// A channel of a stream, for code that is not on its loop.
@usableFromInline package struct BoundChannel: Sendable {
  private let bound: LoopBound<ItemChannel>
  /// Counts the memory of the decoded items that a server's handler reads; nil otherwise.
  let decoded: DecodedMemory?

  package init(_ channel: ItemChannel, decoded: DecodedMemory? = nil) {
    self.decoded = decoded
    bound = LoopBound(channel, on: channel.loop)
  }

  package var loop: EventLoop { bound.loop }

  /// The channel. Use it only on the loop.
  package var value: ItemChannel { bound.value }

  /// Returns the error of a read or write, with the delivery of its request. The error has
  /// cancelled the request, so this waits until the request has ended.
  func settled(_ error: LongLinkError) async -> LongLinkError {
    guard error.delivery == .sent else { return error }
    return await suspend { (waiter: Waiter<LongLinkError>) in
      onLoop { channel in channel.settle(error) { waiter($0) } }
    }
  }

  /// Runs a function on the loop: at once if this is the loop, otherwise in a job.
  func onLoop(_ work: @escaping @Sendable (ItemChannel) -> Void) {
    if loop.isCurrent {
      work(bound.value)
    } else {
      loop.execute { [bound] in work(bound.value) }
    }
  }
}
