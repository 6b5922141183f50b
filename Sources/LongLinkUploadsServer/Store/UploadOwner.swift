// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkTransport
internal import LongLinkUploadMessages

/// Whose an upload is, and against whose limits it counts: a principal, or the address of a client
/// that has none.
///
/// It is text, because it is kept with the upload. An upload of a principal is for this principal
/// alone, from whatever address. One of an address is for whoever knows its ID, since the same
/// client may come back from another address. It is ASCII, so that owners are equal as text only if
/// their bytes are.
enum UploadOwner {
  private static let mark = "principal-"
  private static let hashMark = "principal:sha256-"
  /// The most bytes of a principal's name that are kept, with three for each byte that is no ASCII;
  /// of a longer one its hash is.
  static let mostNameBytes = 1_024

  /// The owner of what a peer creates.
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

  /// The owner where there is no principal.
  static func name(of address: SocketAddress?) -> String {
    switch address?.group {
    case .ipv4(let address): "ipv4-" + hexadecimal(UInt64(address), digits: 8)
    case .ipv6(let network): "ipv6-" + hexadecimal(network, digits: 16)
    case .ipv6Loopback: "ipv6-loopback"
    case nil: "local"
    }
  }

  /// Whether the uploads of an owner may be used by another one, or the same.
  static func mayUse(uploadsOf owner: String, _ other: String) -> Bool {
    let isPrincipal = owner.hasPrefix(mark) || owner.hasPrefix(hashMark)
    return !isPrincipal || owner == other
  }

  private static func hexadecimal(_ number: UInt64, digits: Int) -> String {
    let text = String(number, radix: 16)
    return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
  }
}
