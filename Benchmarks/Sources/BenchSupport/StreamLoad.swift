// SPDX-License-Identifier: Apache-2.0

package import ArgumentParser
import Foundation

/// The options of a peer's client that carries a stream.
package struct StreamLoad: ParsableArguments, Sendable {
  package enum Direction: String, CaseIterable, Codable, ExpressibleByArgument, Sendable {
    /// Items from the server.
    case down
    /// Items to the server.
    case up
    /// Items from the server, and beside them one request of 64 bytes after the other.
    case beside
  }

  @Option(help: "The server's port on the loopback address.")
  package var port: UInt16
  @Option(help: "Items from the server, to the server, or from it beside requests.")
  package var direction = Direction.down
  @Option(help: "Bytes of each item; 8 at least.")
  package var body = 64
  @Flag(help: "Let the library choose the window, instead of 256 KiB and the items' headers.")
  package var ownWindow = false
  @Option(help: "Seconds of warm-up, which are not counted.")
  package var warmUp = 0.3
  @Option(help: "Seconds to count.")
  package var seconds = 1.5
  @Option(help: "End after this many items instead, with a reader that pauses at random.")
  package var items: UInt64?

  package init() {}

  package func validate() throws {
    guard body >= 8 else { throw ValidationError("An item has 8 bytes at least.") }
  }

  /// The most bytes that may be under way: 256 KiB, but two items at least, and their headers.
  package var window: UInt32 { UInt32(max(2, 262_144 / body) * (body + 16)) }

}

/// The item with the number 0: the number in its first 8 bytes, then a pattern.
private func firstItem(of body: Int) -> [UInt8] {
  (0..<body).map { $0 < 8 ? 0 : UInt8(truncatingIfNeeded: $0 &* 31) }
}

/// Checks that items come in order, each as it was sent; one in 8 is compared to the last byte.
package struct ItemCheck {
  private let item: [UInt8]
  /// The number of items so far.
  package private(set) var count: UInt64 = 0

  /// - Parameter body: The bytes of each item.
  package init(body: Int) { item = firstItem(of: body) }

  /// Ends the process if the item is not the next one.
  @inline(__always)
  package mutating func next(_ bytes: [UInt8]) {
    let isRight = bytes.withUnsafeBytes { bytes in
      guard bytes.count == item.count, bytes.loadUnaligned(as: UInt64.self) == count.littleEndian
      else { return false }
      guard count % Load.comparedStride == 0 else { return true }
      return item.withUnsafeBytes { item in
        memcmp(bytes.baseAddress! + 8, item.baseAddress! + 8, item.count - 8) == 0
      }
    }
    guard isRight else { Meter.fail("an item is not what was sent") }
    count += 1
  }
}

/// Makes the items that are sent.
package struct ItemSource: Sendable {
  private var item: [UInt8]
  /// The number of items so far.
  package private(set) var count: UInt64 = 0

  /// - Parameter body: The bytes of each item.
  package init(body: Int) { item = firstItem(of: body) }

  @inline(__always)
  package mutating func next() -> [UInt8] {
    let number = count
    item.withUnsafeMutableBytes { $0.storeBytes(of: number.littleEndian, as: UInt64.self) }
    count += 1
    return item
  }
}
