// SPDX-License-Identifier: Apache-2.0

#if Operations
@_exported public import ServiceLifecycle
#endif
