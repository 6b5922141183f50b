// SPDX-License-Identifier: Apache-2.0

// The routes of uploads are set on a `LongLinkServer`.
@_exported public import LongLinkServer
