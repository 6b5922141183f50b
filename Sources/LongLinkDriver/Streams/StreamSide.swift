// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// One side's exchanges on a link, requests or handlers, as far as they carry items.
package protocol StreamSide: AnyObject {
  /// An item, or the end of the items, has arrived.
  func received(item: Arrival, on link: Link)
  func heard(_ news: StreamNews, of serial: UInt32, on link: Link)
}
