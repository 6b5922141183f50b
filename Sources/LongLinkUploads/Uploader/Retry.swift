// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkUploadMessages

/// How an upload goes on after a failed request.
enum Retry: Error {
  /// The upload ends with this error.
  case final(UploadError)
  /// The server does not know the upload.
  case forgotten
  /// The server has another offset or generation for the upload.
  case conflict(AppendConflict)
  /// The request may succeed later: the connection failed, or the server is busy or does not
  /// answer.
  case link(LongLinkError?)

  init(_ error: LongLinkError) {
    switch error.code {
    case .rejected: self = Retry.rejected(error)
    case .cancelled: self = .final(UploadError(.cancelled))
    case .notConnected, .connectFailed, .connectionLost, .deadlineExceeded, .corrupted,
      .overloaded, .streamEnded:
      self = .link(error)
    case .decodingFailed: self = .final(UploadError(.damaged, link: error))
    default: self = .final(UploadError(.failed, link: error))
    }
  }

  private static func rejected(_ error: LongLinkError) -> Retry {
    switch error.response {
    case .unknownUpload?:
      // `refused` means that no handler exists: the server has no uploads at all.
      error.delivery == .refused
        ? .final(UploadError(.rejected, detail: "the server takes no uploads", link: error))
        : .forgotten
    case .uploadConflict?:
      if let conflict = try? AppendConflict(copying: error.body) {
        .conflict(conflict)
      } else {
        .final(UploadError(.rejected, link: error))
      }
    case .tooLarge?: .final(UploadError(.tooLarge, link: error))
    case .uploadMismatch?: .final(UploadError(.damaged, link: error))
    case .noSpace?: .final(UploadError(.noSpace, link: error))
    // 499 (`cancelled`): the server has stopped its handler, for example because it shuts down.
    case .overloaded?, .draining?, .deadlinePassed?, .cancelled?: .link(error)
    default: .final(UploadError(.rejected, link: error))
    }
  }
}

extension UploadError {
  /// The error of an upload that has had no success for too long.
  static func exhausted(_ error: LongLinkError?) -> UploadError {
    if let error, error.response == .overloaded {
      return UploadError(.tooManyUploads, link: error)
    }
    return UploadError(
      .unreachable, detail: error == nil ? "the server stores no further bytes" : "", link: error)
  }
}
