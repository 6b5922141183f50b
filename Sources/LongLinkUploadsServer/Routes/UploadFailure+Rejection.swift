// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
internal import LongLinkDriver
internal import LongLinkUploadMessages

extension UploadFailure {
  /// The rejection that the client gets.
  var rejection: Rejection {
    switch self {
    case .malformed(let text): Rejection(.malformed, text)
    case .unknown: Rejection(.unknownUpload, "there is no such upload")
    case .conflict(let offset, let generation):
      Rejection(
        .uploadConflict,
        body: (try? AppendConflict(offset: offset, generation: generation).encodedBytes()) ?? [])
    case .tooLarge(let text): Rejection(.tooLarge, text)
    case .mismatch(let text): Rejection(.uploadMismatch, text)
    case .tooMany(let text): Rejection(.overloaded, text, retryAfter: .seconds(1))
    case .tooSlow(let text): Rejection(.deadlinePassed, text)
    case .noSpace(let text): Rejection(.noSpace, text)
    // The client does not learn the reason; it is in the log.
    case .failed, .damaged: Rejection(.failed, "the upload could not be read or written")
    }
  }
}
