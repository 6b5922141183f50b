// SPDX-License-Identifier: Apache-2.0

#if SQLite
@_exported public import LongLinkOnceStore
#endif
