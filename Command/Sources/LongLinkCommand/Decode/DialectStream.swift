// SPDX-License-Identifier: Apache-2.0

import LongLinkCore
internal import LongLinkDialects

/// Decodes a stream of a dialect.
enum DialectStream {
  static func items(
    in bytes: [UInt8], of dialect: FrameDialect, from sender: Role
  ) throws(DialectTokenError) -> [DecodedItem] {
    // A server's codec needs no token, and reads the frames of a client.
    let server = try DialectCodec(dialect, role: .server)
    let codec = sender == .client ? server : server.mirrored
    var decoder = DialectDecoder(codec)
    // Escaped bodies are unescaped in place.
    var rest = bytes
    var (items, offset) = ([DecodedItem](), 0)
    func add(_ length: Int, _ content: DecodedItem.Content) {
      items.append(DecodedItem(offset: offset, length: length, content: content))
    }
    while offset < bytes.count {
      let step = unsafe rest.withUnsafeMutableBytes { buffer in
        unsafe decoder.next(in: UnsafeMutableRawBufferPointer(rebasing: buffer[offset...]))
      }
      switch step {
      case .needMore(let wanted):
        add(
          bytes.count - offset,
          decoder.isLost ? .skipped : .unfinished(wanted: wanted))
        return items
      case .frame(let frame):
        let place = offset + frame.body.lowerBound..<offset + frame.body.upperBound
        var decoded = DecodedFrame(frame, codec)
        decoded.body = Array(rest[place])
        decoded.fields = fields(bytes, offset, frame, dialect, sender)
        add(frame.length, .frame(decoded))
        offset += frame.length
      case .damaged(let count, let violation):
        add(count, .damage(violation.description, nil))
        offset += count
      case .skipped(let count):
        if count > 0 { add(count, .skipped) }
        offset += count
      case .violation(let violation):
        add(min(bytes.count - offset, 1), .damage(violation.description, nil))
        offset += 1
        if offset < bytes.count { add(bytes.count - offset, .skipped) }
        return items
      }
    }
    return items
  }

  /// The fields of a whole frame, with their names.
  private static func fields(
    _ bytes: [UInt8], _ offset: Int, _ frame: DialectFrame, _ dialect: FrameDialect,
    _ sender: Role
  ) -> [DecodedItem.Field] {
    let shape = dialect.layout.shape(from: sender)
    let trailer = shape.trailer.reduce(0) { $0 + $1.width }
    var result: [DecodedItem.Field] = []
    for (fields, start) in [
      (shape.header, offset), (shape.trailer, offset + frame.length - trailer),
    ] {
      var place = start
      for field in fields {
        let raw = bytes[place..<place + field.width]
        let isLittle = (field.byteOrder ?? dialect.layout.byteOrder) == .little
        result.append(
          DecodedItem.Field(name: field.name, value: text(field, raw, isLittle, dialect)))
        place += field.width
      }
    }
    return result
  }

  private static func text(
    _ field: FrameLayout.Field, _ raw: ArraySlice<UInt8>, _ isLittle: Bool,
    _ dialect: FrameDialect
  ) -> String {
    switch field.meaning {
    case .token, .filler:
      return Array(raw).hex
    case .checksum, .constant:
      return "0x" + (isLittle ? raw.reversed() : Array(raw)).hex
    case .type, .serial, .length, .version, .repeatedType:
      return "\(number(raw, isLittle))"
    case .code:
      let value = number(raw, isLittle)
      let name = dialect.codes?.error(UInt32(clamping: value))?.name
      return "\(value)" + (name.map { " (\($0))" } ?? "")
    }
  }

  private static func number(_ raw: ArraySlice<UInt8>, _ isLittle: Bool) -> UInt64 {
    (isLittle ? raw.reversed() : Array(raw)).reduce(0) { $0 << 8 | UInt64($1) }
  }
}

extension DecodedFrame {
  fileprivate init(_ frame: DialectFrame, _ codec: DialectCodec) {
    self.init(kind: "\(frame.head.kind)", serial: frame.serial)
    switch frame.head.kind {
    case .request, .push:
      type = frame.head.tag
    case .response where codec.dialect.codes != nil:
      code = frame.code
      codeName =
        codec.dialect.codes?.success.contains(frame.code) == true
        ? "success" : codec.dialect.codes?.error(frame.code)?.name
    case .cancel where codec.dialect.cancel?.target == .type:
      type = frame.head.tag
    default: break
    }
  }
}

extension [UInt8] {
  /// Two hexadecimal digits for each byte.
  var hex: String {
    map { byte in
      let digits = String(byte, radix: 16)
      return digits.count == 1 ? "0" + digits : digits
    }.joined()
  }
}
