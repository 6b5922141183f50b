// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// The streams of one side on a link: of its requests, or of its handlers.
package protocol StreamSide: AnyObject {
  /// Handles an item, or the end of the items, that has arrived.
  func received(item: Arrival, on link: Link)
  func heard(_ news: StreamNews, of serial: UInt32, on link: Link)
}
