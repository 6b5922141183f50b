// SPDX-License-Identifier: Apache-2.0

/// The directions in which an exchange carries items.
public struct StreamShape: OptionSet, Hashable, Sendable {
  /// The bits: 1 for `requestItems`, 2 for `responseItems`.
  public let rawValue: UInt8

  /// Makes a shape from its bits.
  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// Items of the requester follow its request.
  public static let requestItems = StreamShape(rawValue: 1)
  /// Items of the responder precede its response.
  public static let responseItems = StreamShape(rawValue: 2)
}

/// What a request of this side asks for, if it carries items.
package struct StreamTerms: Equatable, Sendable {
  /// The first credit for items of the responder, in bytes; nil for none.
  package var credit: Int?
  /// The size up to which the window for these items grows, in bytes; nil for the settings' size.
  package var largestWindow: Int?
  /// Whether items of this side follow.
  package var sendsItems: Bool
  /// Whether items go in both directions.
  package var isTwoWay: Bool { credit != nil && sendsItems }

  package init(credit: Int?, largestWindow: Int? = nil, sendsItems: Bool) {
    self.credit = credit
    self.largestWindow = largestWindow
    self.sendsItems = sendsItems
  }
}
