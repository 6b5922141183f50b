// SPDX-License-Identifier: Apache-2.0

internal import LongLinkUploadMessages

extension PreparedUpload {
  /// The parts as a create request describes them.
  var messageParts: [LongLinkUploadMessages.Part] {
    parts.map { part in
      LongLinkUploadMessages.Part(
        field: part.part.field, fileName: part.part.fileName ?? "",
        contentType: part.part.effectiveContentType ?? "", size: part.size)
    }
  }
}
