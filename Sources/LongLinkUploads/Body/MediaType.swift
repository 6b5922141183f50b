// SPDX-License-Identifier: Apache-2.0

/// Media types, such as `text/html; charset=utf-8` (RFC 9110, section 8.3.1).
enum MediaType {
  /// The type that the extension of a file's name suggests.
  static func suggested(byName name: String) -> String {
    guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")), dot > name.startIndex else {
      return unknown
    }
    let start = name.utf8.index(after: dot)
    return byExtension[name[start...].lowercased()] ?? unknown
  }

  private static let unknown = "application/octet-stream"

  private static let byExtension = [
    "7z": "application/x-7z-compressed", "aac": "audio/aac", "avi": "video/x-msvideo",
    "avif": "image/avif", "bmp": "image/bmp", "bz2": "application/x-bzip2", "css": "text/css",
    "csv": "text/csv", "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "epub": "application/epub+zip", "flac": "audio/flac", "gif": "image/gif",
    "gz": "application/gzip", "heic": "image/heic", "heif": "image/heif", "htm": "text/html",
    "html": "text/html", "ico": "image/vnd.microsoft.icon", "jpeg": "image/jpeg",
    "jpg": "image/jpeg", "js": "text/javascript", "json": "application/json",
    "m4a": "audio/mp4", "md": "text/markdown", "mkv": "video/x-matroska",
    "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg",
    "odt": "application/vnd.oasis.opendocument.text", "ogg": "audio/ogg", "otf": "font/otf",
    "pdf": "application/pdf", "png": "image/png",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "rtf": "application/rtf", "svg": "image/svg+xml", "tar": "application/x-tar",
    "tif": "image/tiff", "tiff": "image/tiff", "ttf": "font/ttf", "txt": "text/plain",
    "wasm": "application/wasm", "wav": "audio/wav", "webm": "video/webm", "webp": "image/webp",
    "woff": "font/woff", "woff2": "font/woff2", "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml": "application/xml", "zip": "application/zip", "zst": "application/zstd",
  ]

  /// Whether a text is a media type. Nothing else may become a part of a header.
  static func isValid(_ text: String) -> Bool {
    var rest = Substring(text).utf8
    guard takeToken(&rest), take("/", &rest), takeToken(&rest) else { return false }
    while !rest.isEmpty {
      skipSpace(&rest)
      guard take(";", &rest) else { return false }
      skipSpace(&rest)
      guard takeToken(&rest), take("=", &rest), takeToken(&rest) || takeQuoted(&rest) else {
        return false
      }
    }
    return true
  }

  private static func take(_ character: Unicode.Scalar, _ rest: inout Substring.UTF8View) -> Bool {
    guard rest.first == UInt8(ascii: character) else { return false }
    rest.removeFirst()
    return true
  }

  private static func skipSpace(_ rest: inout Substring.UTF8View) {
    rest = rest.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
  }

  private static func takeToken(_ rest: inout Substring.UTF8View) -> Bool {
    let token = rest.prefix { byte in
      switch Unicode.Scalar(byte) {
      case "0"..."9", "A"..."Z", "a"..."z", "!", "#", "$", "%", "&", "'", "*", "+", "-", ".", "^",
        "_", "`", "|", "~":
        true
      default: false
      }
    }
    rest = rest[token.endIndex...]
    return !token.isEmpty
  }

  private static func takeQuoted(_ rest: inout Substring.UTF8View) -> Bool {
    guard take("\"", &rest) else { return false }
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "\""): return true
      case UInt8(ascii: "\\"):
        guard let next = rest.popFirst(), 0x20..<0x7F ~= next else { return false }
      case 0x20..<0x7F, UInt8(ascii: "\t"): break
      default: return false
      }
    }
    return false
  }
}
