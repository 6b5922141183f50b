// SPDX-License-Identifier: Apache-2.0

#if HTTP
import Testing

/// All tests of HTTP, one after the other: some start programs, and sockets of swift-nio that are
/// made at that moment would stay open in these.
@Suite(.serialized) enum HTTPTests {}
#endif
