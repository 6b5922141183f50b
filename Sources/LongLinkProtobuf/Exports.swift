// SPDX-License-Identifier: Apache-2.0

#if SwiftProtobuf
// Encoding a message involves message types and errors of the core.
@_exported public import LongLinkCore
#endif
