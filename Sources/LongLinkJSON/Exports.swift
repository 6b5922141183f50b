// SPDX-License-Identifier: Apache-2.0

// Bodies use types of the core, and documents use types of the readers.
@_exported public import LongLinkCore
@_exported public import LongLinkReaders
