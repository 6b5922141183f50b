internal import Synchronization

/// A field that keeps the structure it is in from being moved about to be read.
///
/// A large structure that fits in registers as far as the compiler is concerned is copied to the
/// stack for each call of a method that only reads it. One that holds an atomic cannot be, and is
/// read where it is. The session and the table of requests are read several times for each message.
package struct Anchor: ~Copyable, Sendable {
  private let value = Atomic(false)

  package init() {}
}
