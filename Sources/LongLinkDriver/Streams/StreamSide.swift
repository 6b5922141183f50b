// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// One side's exchanges on a link, requests or handlers, as far as they carry items.
package protocol StreamSide: AnyObject {
  /// An item, or the end of the items, has arrived.
  func received(item: Arrival, on link: Link)
  /// The item that this side had waiting has been sent.
  func itemSent(_ serial: UInt32, on link: Link)
  /// The peer gets no credit for the rest of an item, because whole items were not taken.
  func peerIsStuck(_ serial: UInt32, on link: Link)
  /// The rest of an item does not fit into the limit of all windows: end the exchange.
  func streamOverLimit(_ serial: UInt32, on link: Link)
}
