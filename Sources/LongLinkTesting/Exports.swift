// SPDX-License-Identifier: Apache-2.0

// Tests use message types, codes, addresses, endpoints and event loops without further imports.
@_exported public import LongLinkDriver
@_exported public import LongLinkCore
@_exported public import LongLinkTransport
