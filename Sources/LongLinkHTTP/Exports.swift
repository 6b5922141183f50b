// SPDX-License-Identifier: Apache-2.0

#if HTTP
@_exported public import LongLink
#endif
