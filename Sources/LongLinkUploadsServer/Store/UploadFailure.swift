// SPDX-License-Identifier: Apache-2.0

package import LongLinkTransport
internal import LongLinkUploadMessages

/// Why a request for an upload fails.
package enum UploadFailure: Error, Equatable {
  /// The request breaks a rule.
  case malformed(String)
  /// There is no such upload.
  case unknown
  /// The request has another offset or generation than the upload, or comes at a time at which it
  /// cannot be done.
  case conflict(offset: UInt64, generation: UInt64)
  /// The upload is larger than the server takes.
  case tooLarge(String)
  /// The bytes on the server have another size or hash than the request states.
  case mismatch(String)
  /// The client has too many of something; it may try again later.
  case tooMany(String)
  /// Too few bytes have come in their time.
  case tooSlow(String)
  /// No space is left.
  case noSpace(String)
  /// The server could not read or write.
  case failed(FileError)
  /// What was kept cannot be read any more.
  case damaged(String)

  /// The failure of a file: a full disk is told apart.
  init(_ error: FileError) {
    self = error.isNoSpace ? .noSpace("the disk is full") : .failed(error)
  }
}

/// Calls a function of files, and turns its error into that of a request.
func filing<Value>(_ call: () throws(FileError) -> Value) throws(UploadFailure) -> Value {
  do throws(FileError) {
    return try call()
  } catch {
    throw UploadFailure(error)
  }
}
