// SPDX-License-Identifier: Apache-2.0

import COpenSSL
import LongLinkTesting
import Testing

@testable import LongLinkTLS

/// What the messages of strangers may have, byte by byte.
@Suite struct HandshakeBoundsTests {
  private static func vector(_ size: Int, _ content: [UInt8]) -> [UInt8] {
    (0..<size).reversed().map { UInt8(truncatingIfNeeded: content.count >> (8 * $0)) } + content
  }

  /// An element of ASN.1.
  private static func part(_ tag: UInt8, _ content: [UInt8] = []) -> [UInt8] {
    [tag] + (content.count < 128 ? vector(1, content) : [0x82] + vector(2, content))
  }

  /// This many parts, which are empty.
  private static func parts(_ count: Int) -> [UInt8] { (0..<count).flatMap { _ in part(5) } }

  private static func nested(_ tag: UInt8, _ count: Int) -> [UInt8] {
    (0..<count).reduce(into: []) { bytes, _ in bytes = part(tag, bytes) }
  }

  private static let ed25519: [UInt8] = [0x2B, 101, 112]
  private static let elliptic: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1]

  /// A key; its content has 16 bytes more than `size` if that is larger than 255.
  private static func key(
    _ kind: [UInt8] = ed25519, parameters: [UInt8] = [], size: Int = 32
  ) -> [UInt8] {
    let bits = part(3, [UInt8](repeating: 0, count: size))
    return part(0x30, part(0x30, part(6, kind) + parameters) + bits)
  }

  private static let version = part(0xA0, part(2, [2]))

  /// A certificate as far as it is looked at, with 13 parts and those behind.
  private static func certificate(
    version: [UInt8] = version, serial: [UInt8] = part(2, [1]), fields: Int = 4,
    key: [UInt8] = key(), behind: [UInt8] = []
  ) -> [UInt8] {
    let names = (0..<fields).flatMap { _ in part(0x30) }
    return part(0x30, part(0x30, version + serial + names + key + behind))
  }

  private static func message(_ certificates: [[UInt8]], isNew: Bool) -> [UInt8] {
    let list = certificates.flatMap { vector(3, $0) + (isNew ? vector(2, [7]) : []) }
    return [11] + vector(3, (isNew ? [0] : []) + vector(3, list))
  }

  /// Judges a message, and checks that it is changed as it should be.
  private static func problem(
    _ message: [UInt8], fromClient: Bool = true, isNew: Bool
  ) -> ChainProblem? {
    var (judged, expected) = (message, message)
    var span = judged.mutableSpan
    let problem = HandshakeBounds.judge(&span, fromClient: fromClient, isNew: isNew)
    switch problem {
    case nil: break
    case .compressed: expected.replaceSubrange(4..<6, with: [0xFF, 0xFF])
    default:
      expected.replaceSubrange(4..<(isNew ? 8 : 7), with: (isNew ? [0] : []) + [255, 255, 255])
    }
    #expect(judged == expected)
    return problem
  }

  private static func expect(
    _ problem: ChainProblem?, _ what: String, _ certificates: [UInt8]..., fromClient: Bool = true
  ) {
    for isNew in [false, true] {
      let message = message(certificates, isNew: isNew)
      #expect(
        self.problem(message, fromClient: fromClient, isNew: isNew) == problem,
        "\(what), is new: \(isNew)")
    }
  }

  // MARK: Certificates

  @Test func `a chain has ten certificates at most, which may be the same`() {
    Self.expect(nil, "none")
    for fromClient in [true, false] {
      for (count, problem) in [(1, nil), (10, nil), (11, ChainProblem.long), (12, .long)] {
        let certificates = (0..<count).map { _ in Self.certificate() }
        for isNew in [false, true] {
          let message = Self.message(certificates, isNew: isNew)
          #expect(Self.problem(message, fromClient: fromClient, isNew: isNew) == problem)
        }
      }
    }
  }

  @Test func `the parts of all certificates are counted`() {
    func certificate(_ parts: Int) -> [UInt8] {
      Self.certificate(behind: Self.parts(parts - 13))
    }
    Self.expect(nil, "512", certificate(512))
    Self.expect(.crowded, "513", certificate(513))
    Self.expect(nil, "256 twice", certificate(256), certificate(256))
    Self.expect(.crowded, "513 in two", certificate(256), certificate(257))
    Self.expect(nil, "4,096 of a server", certificate(4_096), fromClient: false)
    Self.expect(.crowded, "4,097 of a server", certificate(4_097), fromClient: false)
  }

  @Test func `parts are counted in strings of bytes, and are not too deep`() {
    func expect(_ problem: ChainProblem?, _ what: String, _ behind: [UInt8]) {
      Self.expect(problem, what, Self.certificate(behind: behind))
    }
    expect(nil, "498 in a string", Self.part(4, Self.parts(498)))
    expect(.crowded, "499 in a string", Self.part(4, Self.parts(499)))
    expect(.crowded, "many before damage", Self.part(4, Self.parts(499) + [0xFF]))
    expect(nil, "a string of other bytes", Self.part(4, [0xFF, 0xFF, 0x30]))
    expect(nil, "many in a string of another class", Self.part(0x84, Self.parts(600)))
    expect(nil, "16 deep", Self.nested(0x30, 15))
    expect(.crowded, "17 deep", Self.nested(0x30, 16))
    expect(nil, "strings in strings", Self.nested(4, 40))
  }

  @Test func `damage is not taken for a certificate`() {
    let whole = Self.certificate()
    Self.expect(.key, "empty", [])
    Self.expect(.key, "another part", Self.part(2, [1]))
    Self.expect(.crowded, "a byte behind it", whole + [5])
    Self.expect(nil, "a part behind it", whole + Self.part(5))
    Self.expect(.crowded, "one byte short", whole.dropLast() + [])
    Self.expect(.crowded, "no stated length", [0x30, 0x80] + whole + [0, 0])
    Self.expect(.crowded, "a length of 9 bytes", [0x30, 0x89] + [UInt8](repeating: 255, count: 20))
    Self.expect(.crowded, "a tag without an end", [UInt8](repeating: 0xFF, count: 20))
    Self.expect(nil, "zeros in front of a length", [0x30, 0x84, 0, 0, 0] + whole.dropFirst())
  }

  @Test func `fields that are missing or repeated hide no key`() {
    func expect(_ problem: ChainProblem?, _ what: String, _ certificate: [UInt8]) {
      Self.expect(problem, what, certificate)
    }
    expect(nil, "no version", Self.certificate(version: []))
    expect(.key, "two versions", Self.certificate(version: Self.version + Self.version))
    expect(.key, "no serial number", Self.certificate(serial: []))
    expect(.key, "two serial numbers", Self.certificate(serial: Self.parts(2)))
    expect(.key, "a name less", Self.certificate(fields: 3))
    expect(.key, "a name more", Self.certificate(fields: 5))
    expect(.key, "no key", Self.certificate(key: []))
    expect(nil, "a key behind the key", Self.certificate(behind: Self.key([1])))
    expect(.key, "a key in front of the key", Self.certificate(key: Self.key([1]) + Self.key()))
    Self.expect(
      .key, "a key of the second", Self.certificate(), Self.certificate(key: Self.key([1])))
  }

  @Test func `keys are of the kinds, curves and sizes that TLS uses`() {
    func expect(_ problem: ChainProblem?, _ what: String, _ key: [UInt8]) {
      Self.expect(problem, what, Self.certificate(key: key))
    }
    func identifier(_ name: String) -> [UInt8] {
      let object = unsafe OBJ_txt2obj(name, 0)
      defer { unsafe ASN1_OBJECT_free(object) }
      return unsafe Array(
        UnsafeBufferPointer(start: OBJ_get0_data(object), count: OBJ_length(object)))
    }
    for name in ["rsaEncryption", "RSASSA-PSS", "ED25519", "ED448"] {
      expect(nil, name, Self.key(identifier(name), parameters: Self.part(5)))
    }
    for name in ["dsaEncryption", "dhKeyAgreement", "X25519", "prime256v1", "secp384r1"] {
      expect(.key, name, Self.key(identifier(name), parameters: Self.part(5)))
    }
    for name in ["prime256v1", "secp384r1", "secp521r1"] {
      expect(nil, name, Self.key(Self.elliptic, parameters: Self.part(6, identifier(name))))
    }
    for name in ["sect571r1", "brainpoolP256r1", "secp256k1", "id-ecPublicKey"] {
      expect(.key, name, Self.key(Self.elliptic, parameters: Self.part(6, identifier(name))))
    }
    expect(.key, "no curve", Self.key(Self.elliptic))
    expect(.key, "a curve of its own", Self.key(Self.elliptic, parameters: Self.part(0x30)))
    let (curve, other) = (identifier("prime256v1"), identifier("sect571r1"))
    let curves = Self.part(6, other) + Self.part(6, curve)
    expect(.key, "two curves", Self.key(Self.elliptic, parameters: curves))
    for kind in [Self.ed25519.dropLast() + [], Self.ed25519 + [0], [0] + Self.ed25519, []] {
      expect(.key, "\(kind)", Self.key(kind))
    }
    expect(.key, "no algorithm", Self.part(0x30, Self.part(3, [0])))
    expect(.key, "an empty algorithm", Self.part(0x30, Self.part(0x30) + Self.part(3, [0])))
    expect(nil, "the largest", Self.key(size: 1_152 - 11))
    expect(.key, "one that is larger", Self.key(size: 1_153 - 11))
  }

  @Test func `a message that is cut off is left to OpenSSL`() {
    for isNew in [false, true] {
      let message = Self.message([Self.certificate(), Self.certificate(key: [])], isNew: isNew)
      #expect(Self.problem(message, isNew: isNew) == .key)
      for count in message.indices {
        #expect(Self.problem(Array(message[..<count]), isNew: isNew) == nil, "\(count)")
      }
      for index in 4..<message.count {
        for byte: UInt8 in [0, 0x1F, 0x30, 0x7F, 0x80, 0x88, 0xFF] {
          var changed = message
          changed[index] = byte
          _ = Self.problem(changed, isNew: isNew)
        }
      }
    }
  }

  @Test func `other messages are not judged, but certificates must not be compressed`() {
    let message = Self.message([[]], isNew: true)
    for type: UInt8 in 0...255 where ![11, 25].contains(type) {
      #expect(Self.problem([type] + message.dropFirst(), isNew: true) == nil)
    }
    for isNew in [false, true] {
      #expect(Self.problem([25] + message.dropFirst(), isNew: isNew) == .compressed)
      #expect(Self.problem([25, 0, 0, 4, 0, 1, 0, 0], isNew: isNew) == .compressed)
      #expect(Self.problem([25, 0, 0, 3, 0, 1, 0], isNew: isNew) == nil)
    }
  }

  // MARK: Parts

  @Test func `parts are where OpenSSL finds them`() {
    var generator = SeededGenerator(seed: 7)
    var found = 0
    for _ in 0..<40_000 {
      let choices: [UInt8] = [
        0, 1, 2, 4, 0x1F, 0x30, 0x3F, 0x7F, 0x80, 0x81, 0x82, 0x88, 0x89, 0xFF,
      ]
      let bytes = (0..<Int.random(in: 0...14, using: &generator)).map { _ in
        choices.randomElement(using: &generator) ?? 0
      }
      var rest = bytes.indices
      let part = bytes.span.takePart(from: &rest)
      var (length, tag, kind) = (0, CInt(), CInt())
      let header = unsafe bytes.withUnsafeBufferPointer { buffer -> (form: CInt, start: Int) in
        guard let start = buffer.baseAddress else { return (0x80, 0) }
        var next: UnsafePointer<UInt8>? = unsafe start
        let form = unsafe ASN1_get_object(&next, &length, &tag, &kind, bytes.count)
        return unsafe (form, (next ?? start) - start)
      }
      // An error, or a length that is not stated.
      guard header.form & 0x81 == 0 else {
        #expect(part == nil, "\(bytes)")
        continue
      }
      // Later versions take an empty part at the very end, whose length is in its long form.
      if part == nil, header.start == bytes.count, length == 0 { continue }
      found += 1
      #expect(part?.content == header.start..<header.start + length, "\(bytes)")
      #expect(part?.tag == Int(tag), "\(bytes)")
      #expect(part?.isUniversal == (kind == V_ASN1_UNIVERSAL), "\(bytes)")
      #expect(part?.isConstructed == (header.form & V_ASN1_CONSTRUCTED != 0), "\(bytes)")
      #expect(rest == header.start + length..<bytes.count, "\(bytes)")
    }
    #expect(found > 5_000)
  }

  // MARK: Hellos

  @Test func `the extensions of a hello are bounded`() {
    func list(_ bytes: [UInt8]) -> [UInt8] { Self.vector(2, bytes) }
    func names(_ count: Int, of content: [UInt8] = Self.part(0x30)) -> [UInt8] {
      list((0..<count).flatMap { _ in list(content) })
    }
    func shares(_ count: Int) -> [UInt8] {
      list((0..<count).flatMap { [0x7F, UInt8($0)] + list([1, 2]) })
    }
    func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
    let cases: [(type: CInt, bytes: [UInt8], isCrowded: Bool)] = [
      (10, [], false), (10, zeros(130), false), (10, zeros(131), true),
      (5, [], false), (5, zeros(1_024), false), (5, zeros(1_025), true),
      (47, [], false), (47, [0], false), (47, names(512), false), (47, names(513), true),
      (47, names(1, of: Self.parts(512)), false), (47, names(1, of: Self.parts(513)), true),
      (47, names(2, of: Self.parts(257)), true), (47, names(1, of: []), false),
      // A list, or a name in it, that is cut off is OpenSSL's to refuse; a damaged name is not.
      (47, Array(names(513).dropLast()), false), (47, list([0, 2, 0x30, 0, 0, 9]), false),
      (47, names(1, of: [0x30]), true), (47, names(1, of: [0x30, 0x80, 0, 0]), true),
      (51, [], false), (51, [0], false), (51, shares(0), false), (51, shares(8), false),
      (51, shares(9), true), (51, Array(shares(9).dropLast()), true),
      (51, Array(shares(9).dropLast(3)), false), (51, [0, 9] + [0, 1, 0xFF, 0xFF, 1], false),
      (0, zeros(4_000), false), (13, names(513), false), (-1, zeros(4_000), false),
    ]
    for (type, bytes, isCrowded) in cases {
      let found = HandshakeBounds.isCrowded(type, bytes.span)
      #expect(found == isCrowded, "\(type): \(bytes.prefix(40))")
    }
  }
}
