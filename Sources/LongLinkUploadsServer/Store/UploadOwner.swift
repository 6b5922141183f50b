// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport
internal import LongLinkUploadMessages

/// The owner of an upload, against whose limits it counts: a principal, or the address of a client
/// without a principal.
///
/// It is text, because it is stored with the upload. An upload of a principal is for this principal
/// alone, from any address. An upload of an address is for each client that knows its ID, since the
/// same client may return from another address. The text is ASCII, so that owners are equal as text
/// only if their bytes are.
enum UploadOwner {
  private static let mark = "principal-"
  private static let hashMark = "principal:sha256-"
  /// The longest kept name of a principal, in bytes, with three for each byte that is not ASCII; a
  /// longer name is replaced by its hash.
  static let mostNameBytes = 1_024

  /// The owner of the uploads that a peer creates.
  static func name(of peer: Peer) -> String {
    peer.principal.map { name(ofPrincipal: $0.name) } ?? name(of: peer.address)
  }

  static func name(ofPrincipal name: String) -> String {
    var text = ""
    for byte in name.utf8 {
      if byte < 0x80, byte != UInt8(ascii: "%") {
        text.unicodeScalars.append(UnicodeScalar(byte))
      } else {
        text += "%" + CollectionOfOne(byte).hexadecimal
      }
    }
    guard text.utf8.count > mostNameBytes else { return mark + text }
    return hashMark + SHA256Digest.hash(of: Array(name.utf8)).hexadecimal
  }

  /// The owner for a peer without a principal.
  static func name(of address: SocketAddress?) -> String {
    switch address?.group {
    case .ipv4(let address): "ipv4-" + hexadecimal(UInt64(address), digits: 8)
    case .ipv6(let network): "ipv6-" + hexadecimal(network, digits: 16)
    case .ipv6Loopback: "ipv6-loopback"
    case nil: "local"
    }
  }

  /// Whether `other` may use the uploads of `owner`.
  static func mayUse(uploadsOf owner: String, _ other: String) -> Bool {
    let isPrincipal = owner.hasPrefix(mark) || owner.hasPrefix(hashMark)
    return !isPrincipal || owner == other
  }

  private static func hexadecimal(_ number: UInt64, digits: Int) -> String {
    let text = String(number, radix: 16)
    return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
  }
}
