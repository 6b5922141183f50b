// SPDX-License-Identifier: Apache-2.0

// What users of this module need besides: `ClientSecurity`, `SecurityFailure`, `LongLinkError`.
@_exported public import LongLinkCore
@_exported public import LongLinkDriver
@_exported public import LongLinkTransport
