// SPDX-License-Identifier: Apache-2.0

// The C library of the platform, by one name: what is imported here is imported with this module.

#if canImport(Darwin)
@_exported public import Darwin
#elseif canImport(Glibc)
@_exported public import Glibc
#elseif canImport(Musl)
@_exported public import Musl
#endif
