// SPDX-License-Identifier: Apache-2.0

#if HTTP
@_exported public import LongLink
// Bodies of requests are made as those of uploads are.
@_exported public import LongLinkUploads
#endif
