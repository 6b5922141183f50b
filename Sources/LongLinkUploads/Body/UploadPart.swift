// SPDX-License-Identifier: Apache-2.0

/// One part of an upload: a file, or the value of a form's field. The bytes are in memory, in a
/// file or come from a sequence.
///
/// ```swift
/// let parts: [UploadPart] = [
///   .field("title", "Harbour at night"),
///   .file("photo", at: "harbour.jpg"),
/// ]
/// ```
///
/// Nothing is read before the part is sent, and then only a few pieces at a time.
public struct UploadPart: Sendable {
  /// The name of the field.
  public var field: String
  /// The name of the file; nil if the part is the value of a field.
  public var fileName: String?
  /// The media type, such as `image/png`. If it is nil, a file gets the type that its name's
  /// extension suggests.
  public var contentType: String?
  /// Where the bytes come from.
  public var content: UploadContent

  /// Makes a part.
  public init(
    _ field: String, fileName: String? = nil, contentType: String? = nil, _ content: UploadContent
  ) {
    self.field = field
    self.fileName = fileName
    self.contentType = contentType
    self.content = content
  }

  /// Makes a part with the value of a field.
  public static func field(_ name: String, _ value: String) -> UploadPart {
    UploadPart(name, .bytes(value.utf8))
  }

  /// Makes a part with a file that is in memory.
  public static func bytes(
    _ field: String, fileName: String, contentType: String? = nil, _ bytes: some Sequence<UInt8>
  ) -> UploadPart {
    UploadPart(field, fileName: fileName, contentType: contentType, .bytes(bytes))
  }

  /// Makes a part with a file on disk, or a range of it. If `fileName` is nil, the last component
  /// of the path is used.
  public static func file(
    _ field: String, at path: String, range: Range<UInt64>? = nil, fileName: String? = nil,
    contentType: String? = nil
  ) -> UploadPart {
    let last = path.split(separator: "/").last.map(String.init)
    return UploadPart(
      field, fileName: fileName ?? last ?? path, contentType: contentType,
      .file(path, range: range))
  }

  /// The content type, or else the one that the file's name suggests; nil for a field.
  var effectiveContentType: String? {
    contentType ?? fileName.map { MediaType.suggested(byName: $0) }
  }
}
