// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
@_spi(Loop) package import LongLinkTransport

/// A channel for code that is not on its loop.
@usableFromInline package struct BoundChannel: Sendable {
  private let bound: LoopBound<ItemChannel>
  /// Where the items that a server's handler reads are counted, decoded; otherwise nil.
  let decoded: DecodedMemory?

  package init(_ channel: ItemChannel, decoded: DecodedMemory? = nil) {
    self.decoded = decoded
    bound = LoopBound(channel, on: channel.loop)
  }

  package var loop: EventLoop { bound.loop }

  /// The channel; on the loop.
  package var value: ItemChannel { bound.value }

  /// Returns an error of a read or write with the delivery of the request, which was cancelled
  /// because of it, once that has ended.
  func settled(_ error: LongLinkError) async -> LongLinkError {
    guard error.delivery == .sent else { return error }
    return await suspend { (waiter: Waiter<LongLinkError>) in
      onLoop { channel in channel.settle(error) { waiter($0) } }
    }
  }

  /// Runs a function on the loop: now, or in a job.
  func onLoop(_ work: @escaping @Sendable (ItemChannel) -> Void) {
    if loop.isCurrent {
      work(bound.value)
    } else {
      loop.execute { [bound] in work(bound.value) }
    }
  }
}
