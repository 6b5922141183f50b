// SPDX-License-Identifier: Apache-2.0

// Encoding a message involves message types and errors of the core.
@_exported public import LongLinkCore
