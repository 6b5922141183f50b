// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

/// The methods of the service that `Protocols/uploads.proto` describes.
package enum UploadMethods {
  /// Makes an upload.
  package static let create = RPCMethod<CreateRequest, CreateResponse>(12, "Create", of: service)
  /// Asks for the state of an upload, and can take the upload over.
  package static let status = RPCMethod<StatusRequest, StatusResponse>(13, "Status", of: service)
  /// The message type of the stream whose items are bytes of an upload. Its request is an
  /// ``AppendRequest``, and its response an ``AppendResponse``.
  package static let append: MessageType = 14
  /// Finishes an upload.
  package static let finish = RPCMethod<FinishRequest, FinishResponse>(15, "Finish", of: service)
  /// Removes an upload.
  package static let abort = RPCMethod<AbortRequest, EmptyBody>(16, "Abort", of: service)

  private static let service = "longlink.uploads.Uploads"
}

/// The codes that the service adds to those of the framework.
extension ResponseCode {
  /// 404: there is no such upload.
  package static let unknownUpload: ResponseCode = 404
  /// 409: the request's offset or generation is not the upload's. The body is an `AppendConflict`.
  package static let uploadConflict: ResponseCode = 409
  /// 422: the size or hash differs from that of the bytes that the server has.
  package static let uploadMismatch: ResponseCode = 422
  /// 507: no space is left on the server's disk, or within the client's limits.
  package static let noSpace: ResponseCode = 507
}
