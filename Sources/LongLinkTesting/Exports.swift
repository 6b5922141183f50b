// SPDX-License-Identifier: Apache-2.0

// Tests speak of message types, codes, addresses, endpoints and event loops without importing more
// modules.
@_exported public import LongLinkDriver
@_exported public import LongLinkCore
@_exported public import LongLinkTransport
