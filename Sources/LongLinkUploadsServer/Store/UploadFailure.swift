// SPDX-License-Identifier: Apache-2.0

package import LongLinkTransport
internal import LongLinkUploadMessages

/// Why a request for an upload fails.
package enum UploadFailure: Error, Equatable {
  /// The request breaks a rule.
  case malformed(String)
  /// No upload of this client has the ID.
  case unknown
  /// The request has another offset or generation than the upload, or the upload's phase does not
  /// allow it.
  case conflict(offset: UInt64, generation: UInt64)
  /// The upload is larger than the server takes.
  case tooLarge(String)
  /// The bytes on the server have another size or hash than the request states.
  case mismatch(String)
  /// The client has too many uploads, appends or requests; it may try again later.
  case tooMany(String)
  /// The bytes of an append arrived too slowly.
  case tooSlow(String)
  /// No space is left.
  case noSpace(String)
  /// The server could not read or write a file.
  case failed(FileError)
  /// Stored data cannot be read any more.
  case damaged(String)

  /// Makes the failure for an error of a file; a full disk becomes `noSpace`.
  init(_ error: FileError) {
    self = error.isNoSpace ? .noSpace("the disk is full") : .failed(error)
  }
}

/// Calls a function that uses files, and turns its error into an `UploadFailure`.
func filing<Value>(_ call: () throws(FileError) -> Value) throws(UploadFailure) -> Value {
  do throws(FileError) {
    return try call()
  } catch {
    throw UploadFailure(error)
  }
}
