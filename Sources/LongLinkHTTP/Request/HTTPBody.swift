// SPDX-License-Identifier: Apache-2.0

#if HTTP
public import LongLinkCore
internal import LongLinkTransport
public import LongLinkUploads
internal import NIOCore

/// The body of a request.
public struct HTTPBody: Sendable {
  enum Source: Sendable {
    case none
    case bytes([UInt8])
    case content(UploadContent)
    case multipart([UploadPart])
  }

  let source: Source
  /// The value of `Content-Type`. It is nil for `none`, and for `multipart(_:)`, whose type is made
  /// when the request is sent.
  public let contentType: String?
  /// Whether the body can be read from its beginning more than once. Default true.
  ///
  /// A request is sent again after some redirects, authentication challenges and lost connections.
  /// Set this to false for a sequence that can be read only once: then such a request fails
  /// instead. If its authentication answers challenges and the server has not challenged before, an
  /// empty request goes first. Bytes in memory can always be read again, whatever the value is.
  public var isReplayable = true

  /// No body.
  public static let none = HTTPBody(source: .none, contentType: nil)

  /// Makes a body of bytes with the given content type.
  public static func bytes(_ bytes: some Sequence<UInt8>, contentType: String) -> HTTPBody {
    HTTPBody(source: .bytes(Array(bytes)), contentType: contentType)
  }

  /// Encodes a value as a body: by default as JSON, for a `JSONBody` of LongLinkJSON.
  ///
  /// Throws `BodyError` if the value cannot be encoded.
  public static func encoding(
    _ value: some BodyEncodable, contentType: String = "application/json"
  ) throws(BodyError) -> HTTPBody {
    HTTPBody(source: .bytes(try value.encodedBytes()), contentType: contentType)
  }

  /// Makes a body of form fields, as `application/x-www-form-urlencoded`.
  public static func form(_ fields: [(name: String, value: String)]) -> HTTPBody {
    let text = fields.map { HTTPBody.escaped($0.name) + "=" + HTTPBody.escaped($0.value) }
      .joined(separator: "&")
    return HTTPBody(
      source: .bytes(Array(text.utf8)), contentType: "application/x-www-form-urlencoded")
  }

  /// Makes a form with files, as `multipart/form-data`. The parts are read while they are sent.
  ///
  /// If a part is invalid or cannot be read, the exchange fails with `encodingFailed`.
  public static func multipart(_ parts: [UploadPart]) -> HTTPBody {
    HTTPBody(source: .multipart(parts), contentType: nil)
  }

  /// Makes a body of the bytes of a file or a sequence, which are read while they are sent.
  ///
  /// If they cannot be read, the exchange fails with `encodingFailed`.
  public static func content(_ content: UploadContent, contentType: String) -> HTTPBody {
    HTTPBody(source: .content(content), contentType: contentType)
  }

  /// The text, encoded as the URL standard encodes the value of a form's field.
  static func escaped(_ text: String) -> String {
    var result = ""
    for byte in text.utf8 {
      let scalar = Unicode.Scalar(byte)
      switch scalar {
      case "0"..."9", "A"..."Z", "a"..."z", "*", "-", ".", "_":
        result.unicodeScalars.append(scalar)
      case " ": result += "+"
      default:
        let digits = String(byte, radix: 16, uppercase: true)
        result += digits.count == 1 ? "%0\(digits)" : "%\(digits)"
      }
    }
    return result
  }
}

/// A prepared body, which can be sent.
struct ReadyBody: Sendable {
  enum Source: Sendable {
    case none
    case bytes([UInt8])
    case upload(PreparedUpload)
  }

  var source: Source
  var contentType: String?
  var isReplayable = true

  static let none = ReadyBody(source: .none, contentType: nil)

  /// The number of the body's bytes; nil if it is not known.
  var length: UInt64? {
    switch source {
    case .none: 0
    case .bytes(let bytes): UInt64(bytes.count)
    case .upload(let upload): upload.length
    }
  }

  var isEmpty: Bool {
    if case .none = source { true } else { false }
  }
}

extension HTTPBody {
  /// Prepares the body: looks at its files, off the loop.
  func prepare() async throws(UploadError) -> ReadyBody {
    switch source {
    case .none: return .none
    case .bytes(let bytes):
      return ReadyBody(source: .bytes(bytes), contentType: contentType)
    case .content(let content):
      return ReadyBody(
        source: .upload(try await PreparedUpload([UploadPart("", content)])),
        contentType: contentType,
        isReplayable: isReplayable)
    case .multipart(let parts):
      let form = try MultipartForm(parts)
      return ReadyBody(
        source: .upload(try await PreparedUpload(form.parts)), contentType: form.contentType,
        isReplayable: isReplayable)
    }
  }
}

/// The pieces of an upload for async-http-client, which asks for each when the last one was
/// written.
struct BodyBuffers: AsyncSequence, Sendable {
  typealias Element = ByteBuffer

  let upload: PreparedUpload
  let flight: HTTPFlight
  /// Called with the error if the body cannot be read to its end.
  let failed: @Sendable (UploadError) -> Void

  func makeAsyncIterator() -> Iterator {
    Iterator(pieces: upload.pieces().makeAsyncIterator(), flight: flight, failed: failed)
  }

  struct Iterator: AsyncIteratorProtocol {
    var pieces: BytePieces<UploadError>.Iterator
    let flight: HTTPFlight
    let failed: @Sendable (UploadError) -> Void

    mutating func next() async throws -> ByteBuffer? {
      flight.isReadingBody = true
      defer { flight.isReadingBody = false }
      do throws(UploadError) {
        return try await pieces.next().map { ByteBuffer(bytes: $0) }
      } catch {
        failed(error)
        throw error
      }
    }
  }
}
#endif
