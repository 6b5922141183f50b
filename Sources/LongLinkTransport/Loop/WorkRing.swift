/// What waits to run on a loop.
enum Work {
  /// A job of an actor that lives on the loop.
  case actorJob(UnownedJob)
  /// A job of a task that prefers the loop and is isolated to no actor.
  case taskJob(UnownedJob)
  case closure(@Sendable () -> Void)
  /// A timer that is due whatever the time.
  case timer(LoopTimer)

  /// The job that it is; nil where it is none.
  var job: UnownedJob? {
    switch self {
    case .actorJob(let job), .taskJob(let job): job
    case .closure, .timer: nil
    }
  }
}

/// A queue in a ring that doubles when it is full and never shrinks, so that it does not allocate
/// in the steady state.
///
/// A class of plain private fields, since the compiler then leaves out the checks of exclusive
/// access that each job would pay for otherwise.
@safe final class WorkRing {
  private var storage: UnsafeMutablePointer<Work>
  private var mask: Int
  private var head = 0
  private var count = 0

  init() {
    mask = 255
    unsafe storage = .allocate(capacity: 256)
  }

  var isEmpty: Bool {
    @inline(__always) get { count == 0 }
  }

  @inline(__always)
  func append(_ work: consuming Work) {
    if count > mask { grow() }
    unsafe (storage + ((head &+ count) & mask)).initialize(to: work)
    count &+= 1
  }

  /// Takes the first one out. There must be one.
  @inline(__always)
  func removeFirst() -> Work {
    let index = head
    head = (head &+ 1) & mask
    count &-= 1
    return unsafe (storage + index).move()
  }

  deinit {
    while !isEmpty { _ = removeFirst() }
    unsafe storage.deallocate()
  }

  @inline(never)
  private func grow() {
    let capacity = mask + 1
    let larger = UnsafeMutablePointer<Work>.allocate(capacity: capacity * 2)
    // The part from the head to the end of the storage comes first.
    let upper = capacity - head
    unsafe larger.moveInitialize(from: storage + head, count: upper)
    unsafe (larger + upper).moveInitialize(from: storage, count: head)
    unsafe storage.deallocate()
    unsafe storage = larger
    head = 0
    mask = capacity * 2 - 1
  }
}
