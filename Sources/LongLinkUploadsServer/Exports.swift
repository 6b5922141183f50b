// SPDX-License-Identifier: Apache-2.0

// Uploads are routes of a server.
@_exported public import LongLinkServer
