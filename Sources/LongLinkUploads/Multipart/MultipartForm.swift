// SPDX-License-Identifier: Apache-2.0

/// The parts of an upload in the format `multipart/form-data` (RFC 7578), as browsers send forms.
///
/// ```swift
/// let form = try MultipartForm(parts)
/// let prepared = try await PreparedUpload(form.parts)
/// // Content-Type: form.contentType, Content-Length: prepared.length
/// for try await piece in prepared.pieces() { … }
/// ```
///
/// The form is not assembled anywhere: the contents of the parts are read when they are sent.
public struct MultipartForm: Sendable {
  /// The boundary between the parts: 128 random bits, which no content in memory contains.
  public let boundary: String
  /// The whole form: the headers of the parts, their contents, and what is between them.
  public let parts: [UploadPart]

  /// The value of the header `Content-Type`.
  public var contentType: String { "multipart/form-data; boundary=\(boundary)" }

  /// Makes a form of the parts of an upload, in their order.
  ///
  /// Throws `UploadError` with the code `invalidPart` if a given content type is not a media type.
  public init(_ parts: [UploadPart]) throws(UploadError) {
    var generator = SystemRandomNumberGenerator()
    try self.init(parts, using: &generator)
  }

  /// Makes a form whose boundary comes from a generator of random numbers, which must not be
  /// predictable. Throws as ``init(_:)``.
  public init(
    _ content: [UploadPart], using generator: inout some RandomNumberGenerator
  ) throws(UploadError) {
    var boundary: String
    repeat {
      boundary = MultipartForm.makeBoundary(&generator)
    } while content.contains { $0.mentions(boundary) }
    self.boundary = boundary
    var parts: [UploadPart] = []
    for (index, part) in content.enumerated() {
      let opening = index == 0 ? "--\(boundary)\r\n" : "\r\n--\(boundary)\r\n"
      parts.append(UploadPart("", .bytes((opening + (try part.header(index))).utf8)))
      parts.append(UploadPart("", part.content))
    }
    // A form without parts is only its last line.
    let closing = parts.isEmpty ? "--\(boundary)--\r\n" : "\r\n--\(boundary)--\r\n"
    parts.append(UploadPart("", .bytes(closing.utf8)))
    self.parts = parts
  }

  private static func makeBoundary(_ generator: inout some RandomNumberGenerator) -> String {
    var text = "longlink-"
    for _ in 0..<2 {
      let digits = String(generator.next() as UInt64, radix: 16)
      text += String(repeating: "0", count: 16 - digits.count) + digits
    }
    return text
  }
}

extension UploadPart {
  /// The lines before the content, with the empty line at their end.
  fileprivate func header(_ index: Int) throws(UploadError) -> String {
    var text = "Content-Disposition: form-data; name=\"\(UploadPart.escaped(field))\""
    if let fileName { text += "; filename=\"\(UploadPart.escaped(fileName))\"" }
    if let type = effectiveContentType {
      guard MediaType.isValid(type) else {
        throw UploadError(
          .invalidPart, part: index, detail: "its content type is not a media type")
      }
      text += "\r\nContent-Type: \(type)"
    }
    return text + "\r\n\r\n"
  }

  /// The name as browsers write it: only characters that would end it are encoded.
  private static func escaped(_ name: String) -> String {
    var result = ""
    for scalar in name.unicodeScalars {
      switch scalar {
      case "\r": result += "%0D"
      case "\n": result += "%0A"
      case "\"": result += "%22"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// Whether the boundary occurs in the names or in a content that is in memory.
  fileprivate func mentions(_ boundary: String) -> Bool {
    if field.contains(boundary) || fileName?.contains(boundary) == true { return true }
    guard case .bytes(let bytes) = content.source else { return false }
    let pattern = Array(boundary.utf8)
    var start = bytes.startIndex
    while let first = bytes[start...].firstIndex(of: pattern[0]) {
      if bytes[first...].starts(with: pattern) { return true }
      start = first + 1
    }
    return false
  }
}
