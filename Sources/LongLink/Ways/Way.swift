// SPDX-License-Identifier: Apache-2.0

package import LongLinkTransport

/// A way in which the requests of a client reach its servers.
public struct Way: Sendable {
  enum Kind: Sendable {
    case longLink
    case short(any ShortLinkOpener)
  }

  let kind: Kind

  /// The long link: one persistent connection to one of the configuration's servers.
  public static let longLink = Way(kind: .longLink)

  /// Short links: a stream of bytes for each request, which `opener` opens.
  package init(short opener: any ShortLinkOpener) {
    kind = .short(opener)
  }

  private init(kind: Kind) {
    self.kind = kind
  }

  /// The way's name in errors, logs and counters: `long link`, or the URL of its server.
  public var name: String {
    switch kind {
    case .longLink: "long link"
    case .short(let opener): opener.name
    }
  }

  /// Whether short links of this way are encrypted, so that an attacker on the path cannot read
  /// them.
  package var isConfidential: Bool { opener?.isConfidential ?? false }

  /// The opener of a way of short links; nil for the long link.
  var opener: (any ShortLinkOpener)? {
    switch kind {
    case .longLink: nil
    case .short(let opener): opener
    }
  }
}
