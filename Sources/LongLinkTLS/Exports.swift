// SPDX-License-Identifier: Apache-2.0

// What configurations take and errors have: `ClientSecurity`, `SecurityFailure`, `LongLinkError`.
@_exported public import LongLinkCore
@_exported public import LongLinkDriver
@_exported public import LongLinkTransport
