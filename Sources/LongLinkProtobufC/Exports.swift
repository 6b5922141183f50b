// SPDX-License-Identifier: Apache-2.0

// Whoever encodes a message meets message types and errors of the core.
@_exported public import LongLinkCore
