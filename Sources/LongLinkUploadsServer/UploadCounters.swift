// SPDX-License-Identifier: Apache-2.0

/// A snapshot of the counters of a server's uploads, which begin when `routeUploads` is called.
public struct UploadCounters: Hashable, Sendable {
  /// Uploads that are not finished now.
  public internal(set) var unfinished = 0
  /// The bytes that were written of unfinished uploads, without the 4 KiB that limits add per file.
  public internal(set) var unfinishedBytes: UInt64 = 0
  /// Finished uploads that are remembered, to answer repeated requests.
  public internal(set) var remembered = 0
  /// Appends that are running now.
  public internal(set) var appendsRunning = 0
  /// Uploads that were created.
  public internal(set) var created: UInt64 = 0
  /// Unfinished uploads of an earlier run that were found at the start.
  public internal(set) var restored: UInt64 = 0
  /// Uploads that were finished.
  public internal(set) var finished: UInt64 = 0
  /// Requests to finish an upload that `mayFinish` of `routeUploads` refused.
  public internal(set) var refused: UInt64 = 0
  /// Uploads that were removed because the client asked for it.
  public internal(set) var aborted: UInt64 = 0
  /// Uploads that were removed because nothing was appended for too long.
  public internal(set) var expired: UInt64 = 0
  /// Uploads that were removed because their bytes did not have the hash that the client stated.
  public internal(set) var mismatched: UInt64 = 0
  /// Appends that ended with all of their bytes durable.
  public internal(set) var appends: UInt64 = 0
  /// Appends that were cut off, by the end of their connection or by an error.
  public internal(set) var appendsCut: UInt64 = 0
  /// Bytes that were written, those of appends that were cut off included.
  public internal(set) var bytesWritten: UInt64 = 0
  /// Times that an upload was taken over.
  public internal(set) var takeovers: UInt64 = 0
  /// Requests that were answered with 409.
  public internal(set) var conflicts: UInt64 = 0
  /// Requests that were answered with 413.
  public internal(set) var tooLarge: UInt64 = 0
  /// Requests that were answered with 429 because of a limit of uploads.
  public internal(set) var tooMany: UInt64 = 0
  /// Appends that were answered with 408 because too few bytes came.
  public internal(set) var tooSlow: UInt64 = 0
  /// Requests that were answered with 507.
  public internal(set) var noSpace: UInt64 = 0
  /// Requests that failed because the server could not read or write, and were answered with 500.
  public internal(set) var failures: UInt64 = 0
  /// Entries of `.unfinished` and `.finished` that were not uploads, or not readable, at a start.
  public internal(set) var unreadable: UInt64 = 0
}
