// SPDX-License-Identifier: Apache-2.0

#if HTTP
public import LongLinkDriver
import LongLinkUploads

/// Why a download has failed.
public enum HTTPDownloadError: Error, Sendable, CustomStringConvertible {
  /// The exchange failed.
  case exchange(LongLinkError)
  /// The file cannot be written, or another download writes it; the text has the reason.
  case file(path: String, String)

  /// The error in one line.
  public var description: String {
    switch self {
    case .exchange(let error): "\(error)"
    case .file(let path, let text): "\(path): \(text)"
    }
  }
}

extension HTTPDownloadError: CancellableError {
  package var wasCancelled: Bool {
    if case .exchange(let error) = self { error.wasCancelled } else { false }
  }
}

/// A file that was downloaded.
public struct HTTPDownload: Hashable, Sendable {
  /// The number of bytes of the whole file.
  public let bytes: UInt64
  /// The number of bytes at the file's beginning that an earlier download had received; 0 if none.
  public let keptBytes: UInt64
}

extension HTTPService {
  /// Receives a response into a file, which replaces any file at the path once it is complete.
  ///
  /// Until then the file is `PATH.part`. If the download fails and the server has given a strong
  /// tag (`ETag`), the received bytes are kept, and the next GET of the same URL to the same path
  /// asks for the rest, if `resumes` is true. `PATH.part.etag` keeps the URL, the tag and the
  /// length; a name of over 241 bytes is replaced with its hash in both. The server is asked with
  /// `If-Range`, so that a file never mixes two versions. Of two downloads to one path at the same
  /// time, the second fails.
  ///
  /// The size is bounded only by the disk. Redirects, authentication and timeouts are as with
  /// `open`. Throws `HTTPDownloadError`, whose cases tell a failed exchange from a failed file.
  @discardableResult
  public func download(
    _ request: HTTPRequest, to path: String, resumes: Bool = true
  ) async throws(HTTPDownloadError) -> HTTPDownload {
    let result: Result<HTTPDownload, HTTPDownloadError>
    do throws(DownloadProblem) {
      let file = try await DownloadProblem.offloading { () throws(DownloadProblem) in
        try DownloadFile(for: path)
      }
      // The worker thread may still hold the file for a moment when this returns.
      defer { file.unlock() }
      var download = FileDownload(core: core, request: request, path: path, file: file)
      result = try await download.run(resumes: resumes)
    } catch {
      throw .file(path: path, error.description)
    }
    return try result.get()
  }
}

/// A running download.
struct FileDownload {
  private static let pieceBytes = 262_144

  let core: ServiceCore
  let request: HTTPRequest
  let path: String
  let file: DownloadFile
  /// Whether the received bytes can be resumed later.
  private var isResumable = false
  private var offset: UInt64 = 0

  init(core: ServiceCore, request: HTTPRequest, path: String, file: DownloadFile) {
    self.core = core
    self.request = request
    self.path = path
    self.file = file
  }

  mutating func run(
    resumes: Bool
  ) async throws(DownloadProblem) -> Result<HTTPDownload, HTTPDownloadError> {
    let url = request.url
    var kept: KeptPart?
    if resumes, request.method == .get {
      kept = try await DownloadProblem.offloading { [file] () throws(DownloadProblem) in
        try file.kept(of: url)
      }
    }
    do throws(LongLinkError) {
      var opened = try await open(after: kept)
      if opened == nil { opened = try await open(after: nil) }
      guard let (response, start, end) = opened else { return .failure(.exchange(unexpected())) }
      let whole = try await receive(response, from: start, to: end)
      return whole.map { HTTPDownload(bytes: $0, keptBytes: start) }
    } catch {
      if !isResumable, kept == nil || offset > 0 {
        try await DownloadProblem.offloading { [file] in file.abandon() }
      }
      return .failure(.exchange(error))
    }
  }

  private var operation: LongLinkError.Operation {
    .exchange(HTTPExchange(request, on: core).purpose.operation, type: nil)
  }

  private func unexpected() -> LongLinkError {
    LongLinkError(
      .protocolViolation, delivery: .answered,
      doing: operation,
      detail: "the server sends a range that was not asked for")
  }

  /// Requests the file, or the rest of it. Returns the offset of the first byte, and for a rest the
  /// offset after the last. Nil if the response does not fit the kept bytes.
  private func open(
    after kept: KeptPart?
  ) async throws(LongLinkError) -> (HTTPResponse, start: UInt64, end: UInt64?)? {
    let exchange = HTTPExchange(request, on: core)
    // A range counts bytes of the encoded body.
    exchange.acceptsCompression = false
    if let kept {
      exchange.extraFields["Range"] = "bytes=\(kept.count)-"
      exchange.extraFields["If-Range"] = kept.tag
    }
    let response: HTTPResponse
    do throws(LongLinkError) {
      response = try await exchange.response()
    } catch {
      if kept != nil, error.response?.rawValue == 416 { return nil }
      throw error
    }
    guard response.status == 206 else { return (response, 0, nil) }
    guard let kept, response.fields["ETag"].map({ $0 == kept.tag }) ?? true,
      response.fields["Content-Encoding"] == nil,
      let range = ContentRange(response.fields["Content-Range"]), range.first == kept.count,
      // If a server changes the size under the same strong tag, the rest may not fit.
      range.total == nil || kept.total == nil || range.total == kept.total
    else { return nil }
    return (response, kept.count, range.total ?? kept.total ?? range.last + 1)
  }

  private mutating func receive(
    _ response: HTTPResponse, from start: UInt64, to end: UInt64?
  ) async throws(LongLinkError) -> Result<UInt64, HTTPDownloadError> {
    do {
      let url = request.url
      if start == 0 {
        let tag = FileDownload.tag(of: response)
        isResumable = try await DownloadProblem.offloading {
          [file] () throws(DownloadProblem) in
          try file.begin(url, tag: tag, total: response.length)
        }
      } else {
        isResumable = true
      }
      offset = start
      try await write(response.chunks)
      if let end, offset != end {
        throw LongLinkError(
          .connectionLost, delivery: .sent, doing: operation,
          detail: "the bytes end at \(offset), and the file at \(end)")
      }
      try await DownloadProblem.offloading { [file] () throws(DownloadProblem) in
        try file.finish()
      }
      return .success(offset)
    } catch let error as LongLinkError {
      throw error
    } catch {
      return .failure(.file(path: path, "\(error)"))
    }
  }

  private mutating func write(_ chunks: BytePieces<LongLinkError>) async throws {
    var piece: [UInt8] = []
    var failure: LongLinkError?
    var reader = chunks.makeAsyncIterator()
    while true {
      var chunk: [UInt8]?
      do throws(LongLinkError) {
        chunk = try await reader.next(isolation: #isolation)
      } catch {
        // The bytes that have arrived are kept.
        failure = error
      }
      if let chunk { piece += chunk }
      if piece.count >= FileDownload.pieceBytes || chunk == nil, !piece.isEmpty {
        let position = offset
        try await DownloadProblem.offloading { [file, piece] () throws(DownloadProblem) in
          try file.write(piece, at: position)
        }
        offset += UInt64(piece.count)
        piece.removeAll(keepingCapacity: true)
      }
      if let failure { throw failure }
      if chunk == nil { return }
    }
  }

  /// The strong tag of the response's version; nil if a download of it cannot be resumed.
  private static func tag(of response: HTTPResponse) -> String? {
    guard response.status == 200, response.fields["Content-Encoding"] == nil,
      let tag = response.fields["ETag"], tag.hasPrefix("\""), tag.hasSuffix("\""),
      tag.utf8.count >= 2, tag.utf8.count <= 1024
    else { return nil }
    return tag
  }
}

/// The value of a `Content-Range` field, such as `bytes 5-9/10`.
struct ContentRange: Equatable {
  let first: UInt64
  let last: UInt64
  let total: UInt64?

  init?(_ text: String?) {
    guard let text, text.hasPrefix("bytes ") else { return nil }
    let parts = text.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
    let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, ends.count == 2, let first = UInt64(ends[0]),
      let last = UInt64(ends[1]), first <= last, last < .max
    else { return nil }
    total = UInt64(parts[1])
    guard total != nil || parts[1] == "*", total.map({ last < $0 }) ?? true else { return nil }
    self.first = first
    self.last = last
  }
}
#endif
