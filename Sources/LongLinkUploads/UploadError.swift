// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
public import LongLinkDriver
internal import LongLinkTransport

/// Why an upload, or the reading of its bytes, has ended.
public struct UploadError: Error, Hashable, Sendable {
  /// The kind of error.
  public let code: Code
  /// The path of the file that the error is about, if any.
  public let path: String?
  /// The index of the part that the error is about, if any.
  public let part: Int?
  /// A detail for people; empty if there is none.
  public let detail: String
  /// The error of the failed request; nil if no request to the server has failed.
  public var link: LongLinkError? { request.error }

  private let request: RequestFailure

  /// The error of a request is equal to itself, but has no hash.
  private struct RequestFailure: Hashable, Sendable {
    let error: LongLinkError?

    func hash(into hasher: inout Hasher) { hasher.combine(error?.code) }
  }

  package init(
    _ code: Code, path: String? = nil, part: Int? = nil, detail: String = "",
    link: LongLinkError? = nil
  ) {
    self.code = code
    self.path = path
    self.part = part
    self.detail = detail
    request = RequestFailure(error: link)
  }
}

extension UploadError {
  /// A kind of error; later versions may add kinds.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    /// The kind in a few words.
    public let description: String

    private init(_ description: String) { self.description = description }

    /// A part is invalid: its name contains U+0000, its content type is not a media type, its range
    /// goes beyond the end of its file, or the sizes of the parts have no sum.
    public static let invalidPart = Code("a part is invalid")
    /// There is no file at the path, or it has been removed.
    public static let fileMissing = Code("the file is missing")
    /// The path names a directory.
    public static let isDirectory = Code("it is a directory")
    /// The path names a FIFO, a socket or a device.
    public static let notRegularFile = Code("it is not a regular file")
    /// The file cannot be read; `detail` has the system's reason.
    public static let fileUnreadable = Code("the file cannot be read")
    /// The file was modified after the upload began, or the path names another file now.
    public static let fileChanged = Code("the file has changed")
    /// The file has become longer.
    public static let fileGrew = Code("the file has grown")
    /// The file has become shorter.
    public static let fileShrank = Code("the file has shrunk")
    /// A sequence had more or fewer bytes than its declared length, or an offset was past the end.
    public static let wrongLength = Code("the length is wrong")
    /// The function that makes a sequence, or the sequence, threw an error.
    public static let sourceFailed = Code("the source failed")
    /// The file at `UploadOptions.record` describes an upload of other parts, or is not a record.
    public static let otherRecord = Code("the record is of another upload")
    /// The file at `UploadOptions.record` cannot be read or written.
    public static let recordFailed = Code("the record failed")
    /// The server refused the upload; `link` has its code and text, if there is one.
    public static let rejected = Code("rejected")
    /// The upload is larger than the server takes.
    public static let tooLarge = Code("too large")
    /// The server had no room for the upload, because of too many uploads or requests, for the
    /// whole time of `UploadOptions.patience`; `link` is its last refusal.
    public static let tooManyUploads = Code("too many uploads")
    /// The server has no space left. It keeps the bytes that it has.
    public static let noSpace = Code("no space is left on the server")
    /// Another client has taken the upload over, and goes on with it.
    public static let takenOver = Code("taken over by another client")
    /// The server has forgotten the upload again, after it was begun anew three times.
    public static let forgotten = Code("forgotten by the server")
    /// The server received other bytes than were sent, or sent an answer that makes no sense.
    public static let damaged = Code("damaged")
    /// The server could not be reached, or stored too few new bytes, for the whole time of
    /// `UploadOptions.patience`; `link` has the last failed request, if one failed.
    public static let unreachable = Code("no progress")
    /// A request failed in a way that no retry mends, such as `closed`, `unsupported`,
    /// `securityFailed` or `notAccepted`; `link` is that error.
    public static let failed = Code("failed")
    /// The upload was cancelled.
    public static let cancelled = Code("cancelled")
  }
}

extension UploadError: CustomStringConvertible {
  /// The path, the kind, the detail and the failed request in one line.
  public var description: String {
    var text = path.map { "\(PeerText($0)): " } ?? part.map { "part \($0): " } ?? ""
    text += code.description
    if !detail.isEmpty { text += ": \(detail)" }
    if let link { text += " (\(link))" }
    return text
  }
}

extension UploadError {
  /// Makes the error for a file that cannot be opened or read.
  init(of failure: FileError, at path: String) {
    if failure.isDirectory {
      self.init(.isDirectory, path: path)
    } else if failure.isNotRegular {
      self.init(.notRegularFile, path: path)
    } else {
      let code = failure.isMissing ? Code.fileMissing : .fileUnreadable
      self.init(code, path: path, detail: failure.reason)
    }
  }

  /// Makes the error for a file that has changed; nil if it has not.
  init?(_ now: FileIdentity, insteadOf then: FileIdentity, path: String) {
    if now == then { return nil }
    if now.inode != then.inode || now.device != then.device {
      self.init(.fileChanged, path: path, detail: "another file has its name")
    } else if now.size != then.size {
      self.init(
        now.size > then.size ? .fileGrew : .fileShrank, path: path,
        detail: "from \(then.size) to \(now.size) bytes")
    } else {
      self.init(.fileChanged, path: path, detail: "its time of modification is another")
    }
  }
}

extension UploadError: CancellableError {
  package var wasCancelled: Bool { code == .cancelled }
}
