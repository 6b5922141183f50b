// SPDX-License-Identifier: Apache-2.0

// Bodies involve types of the core, and documents those of the readers.
@_exported public import LongLinkCore
@_exported public import LongLinkReaders
