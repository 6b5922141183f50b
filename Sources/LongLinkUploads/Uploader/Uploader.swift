// SPDX-License-Identifier: Apache-2.0

internal import LongLinkCore
@_spi(Loop) internal import LongLinkTransport

/// Uploads files, bytes and sequences to a server that has LongLinkUploadsServer.
///
/// ```swift
/// let uploader = Uploader(client)
/// let upload = uploader.start([.file("photo", at: "harbour.jpg")])
/// for await progress in upload.progress() { show(progress) }
/// let receipt = try await upload.receipt
/// ```
///
/// The bytes are sent in appends, each of which the server acknowledges once it has them on its
/// disk. After a lost connection or a restart of the server, the upload continues after the last
/// byte that the server has. At the end, the server checks the SHA-256 of all bytes.
///
/// At most ``mostAtOnce`` uploads of a client run at once; others wait.
public final class Uploader: Sendable {
  /// The most uploads of a client that run at once.
  public static let mostAtOnce = 4

  /// The client whose connection is used.
  public let client: LongLinkClient
  private let places: UploadPlaces

  /// Makes an uploader on a client.
  public init(_ client: LongLinkClient) {
    self.client = client
    places = UploadPlaces.of(client)
  }

  /// Starts an upload of parts in their order. It goes on until it ends or is cancelled, even if no
  /// caller waits for it.
  public func start(_ parts: [UploadPart], options: UploadOptions = UploadOptions()) -> Upload {
    let hub = ProgressHub(options.onProgress)
    let run = UploadRun(parts, options: options, client: client, hub: hub)
    let task = Task(executorPreference: client.loop) { [places] () -> Upload.Outcome in
      guard await places.take() else {
        hub.finish()
        return .failure(UploadError(.cancelled))
      }
      let outcome = await run.run()
      places.giveBack()
      return outcome
    }
    return Upload(task: task, hub: hub)
  }

  /// Uploads parts in their order, and returns when the server has all of them.
  ///
  /// Cancelling the task cancels the upload. Throws `UploadError`.
  public func upload(
    _ parts: [UploadPart], options: UploadOptions = UploadOptions()
  ) async throws(UploadError) -> UploadReceipt {
    try await start(parts, options: options).receipt
  }
}

/// An upload that was started.
public final class Upload: Sendable {
  typealias Outcome = Result<UploadReceipt, UploadError>

  private let task: Task<Outcome, Never>
  private let hub: ProgressHub

  init(task: Task<Outcome, Never>, hub: ProgressHub) {
    self.task = task
    self.hub = hub
  }

  /// Waits until the upload has ended, and returns the server's receipt. Cancelling the waiting
  /// task cancels the upload. Throws the error with which the upload ended.
  public var receipt: UploadReceipt {
    get async throws(UploadError) {
      let outcome = await withTaskCancellationHandler {
        await task.value
      } onCancel: {
        task.cancel()
      }
      return try outcome.get()
    }
  }

  /// Stops the upload. It ends with the code `cancelled`, unless it has ended already.
  public func cancel() { task.cancel() }

  /// Returns a sequence of the progress: the latest value and later ones, until the upload ends.
  ///
  /// There are at most 10 values a second, and a slow reader gets only the newest. The last value
  /// of an upload that succeeds has all bytes.
  public func progress() -> AsyncStream<UploadProgress> { hub.subscribe() }
}
