#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The target that the environment names; a mistake is told at once.
private let chosen: FuzzTarget = {
  let name = unsafe getenv("LONGLINK_FUZZ").map { unsafe String(cString: $0) } ?? ""
  guard let target = FuzzTarget(rawValue: name) else {
    let names = FuzzTarget.allCases.map(\.rawValue).joined(separator: ", ")
    fatalError("LONGLINK_FUZZ names none of \(names)")
  }
  return target
}()

/// What libFuzzer calls with each input. Nothing else does.
@_cdecl("LLVMFuzzerTestOneInput")
@unsafe
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  // libFuzzer lends so many bytes for the time of the call.
  let bytes = unsafe [UInt8](UnsafeBufferPointer(start: start, count: count))
  do {
    try chosen.run(bytes)
  } catch {
    fatalError("\(chosen.rawValue): \(error)")
  }
  return 0
}
