// SPDX-License-Identifier: Apache-2.0

#if HTTP
@_exported public import LongLink
// Request bodies are made from the same types as uploads.
@_exported public import LongLinkUploads
#endif
