// SPDX-License-Identifier: Apache-2.0

// What configurations take and handlers see: `OnceStore` and its values.
@_exported public import LongLinkOnceStore
