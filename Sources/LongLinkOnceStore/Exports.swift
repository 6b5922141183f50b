// SPDX-License-Identifier: Apache-2.0

// What a store keeps: `MessageType` and `ResponseCode`.
@_exported public import LongLinkCore
