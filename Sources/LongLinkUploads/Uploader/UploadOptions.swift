// SPDX-License-Identifier: Apache-2.0

/// The options of an upload. Each has a default.
public struct UploadOptions: Sendable {
  /// The most bytes per second; nil, the default, for no limit. A number below 1 counts as 1. With
  /// a limit, an append carries at most the bytes of one second.
  public var bytesPerSecond: Int?
  /// The path of a small file with which a later process can go on with the upload; nil, the
  /// default, for none.
  ///
  /// The file has the upload's ID and key, and the sizes and times of its files, so keep it
  /// private. It is written before anything is sent, and removed once the upload is finished. If it
  /// exists at the start, the upload goes on at the server's offset; if it belongs to other parts,
  /// the upload fails with `otherRecord`. An upload that the server has forgotten begins anew.
  public var record: String?
  /// How long the upload is retried without success, for instance after a lost connection or a
  /// restart of the server; then it ends with `unreachable` or `tooManyUploads`. Default: 60 s.
  ///
  /// It is a success if the server stores new bytes, at least 100 per second on average since the
  /// last success. Time in which the upload has no bytes to send does not count: because a sequence
  /// is slow, or because of `bytesPerSecond`.
  public var patience: Duration
  /// The longest wait for the server's answer to an append, after its last byte was sent: the
  /// server first makes the bytes durable. Then the upload asks the server for its offset, and goes
  /// on there. Default: 60 s.
  public var answerTimeout: Duration
  /// Whether cancelling also removes the upload from the server, and the `record`. Default nil:
  /// only if there is no `record`, with which the upload could go on later.
  public var abortsOnCancel: Bool?
  /// Called with the progress on the client's loop, at most 10 times a second. It must not block.
  /// Default nil.
  public var onProgress: (@Sendable (UploadProgress) -> Void)?

  /// Makes options with the given values.
  public init(
    bytesPerSecond: Int? = nil, record: String? = nil, patience: Duration = .seconds(60),
    answerTimeout: Duration = .seconds(60),
    abortsOnCancel: Bool? = nil, onProgress: (@Sendable (UploadProgress) -> Void)? = nil
  ) {
    self.bytesPerSecond = bytesPerSecond
    self.record = record
    self.patience = patience
    self.answerTimeout = answerTimeout
    self.abortsOnCancel = abortsOnCancel
    self.onProgress = onProgress
  }
}

/// The server's receipt for a finished upload.
public struct UploadReceipt: Hashable, Sendable {
  /// The ID that the server gave the upload.
  public let id: String
  /// The name under which the server keeps each file, in the order of the parts; empty for the
  /// value of a field.
  public let names: [String]
  /// The bytes of all parts together, with the values of fields.
  public let size: UInt64
  /// The SHA-256 of the bytes of all parts together, in their order and with the values of fields.
  /// The server has compared it with what it received.
  public let sha256: [UInt8]
}
