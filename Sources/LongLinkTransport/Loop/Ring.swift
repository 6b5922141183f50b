// SPDX-License-Identifier: Apache-2.0

/// A queue in a ring buffer that doubles when it is full and never shrinks, so that it does not
/// allocate in the steady state.
///
/// Only the `count` slots from `head` on, wrapping at the end of the storage, are initialized.
@safe struct Ring<Element>: ~Copyable {
  private var storage: UnsafeMutablePointer<Element>
  private var mask: Int
  private var head = 0
  private(set) var count = 0

  /// Makes an empty ring with room for `capacity` elements, a power of two.
  init(capacity: Int = 16) {
    precondition(capacity > 0 && capacity & (capacity - 1) == 0, "not a power of two")
    mask = capacity - 1
    unsafe storage = .allocate(capacity: capacity)
  }

  var isEmpty: Bool {
    @inline(__always) get { count == 0 }
  }

  @inline(__always)
  mutating func append(_ element: consuming Element) {
    if count > mask { grow() }
    unsafe (storage + ((head &+ count) & mask)).initialize(to: element)
    count &+= 1
  }

  /// Removes the first element. There must be one.
  @inline(__always)
  mutating func removeFirst() -> Element {
    let index = head
    head = (head &+ 1) & mask
    count &-= 1
    return unsafe (storage + index).move()
  }

  deinit {
    for offset in 0..<count {
      unsafe (storage + ((head &+ offset) & mask)).deinitialize(count: 1)
    }
    unsafe storage.deallocate()
  }

  @inline(never)
  private mutating func grow() {
    let capacity = mask + 1
    let larger = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
    // The elements from the head to the end of the storage are first.
    let upper = capacity - head
    unsafe larger.moveInitialize(from: storage + head, count: upper)
    unsafe (larger + upper).moveInitialize(from: storage, count: head)
    unsafe storage.deallocate()
    unsafe storage = larger
    head = 0
    mask = capacity * 2 - 1
  }
}
