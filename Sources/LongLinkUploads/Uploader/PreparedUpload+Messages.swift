// SPDX-License-Identifier: Apache-2.0

internal import LongLinkUploadMessages

extension PreparedUpload {
  /// The parts as the server wants to know them.
  var messageParts: [LongLinkUploadMessages.Part] {
    parts.map { part in
      LongLinkUploadMessages.Part(
        field: part.part.field, fileName: part.part.fileName ?? "",
        contentType: part.part.effectiveContentType ?? "", size: part.size)
    }
  }
}
