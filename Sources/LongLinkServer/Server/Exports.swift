// SPDX-License-Identifier: Apache-2.0

@_exported public import LongLinkDriver
@_exported public import LongLinkCore
@_exported public import LongLinkTransport
