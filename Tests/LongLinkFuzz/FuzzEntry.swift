// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The target that the environment names; a mistake is told at once.
private let chosen: FuzzTarget = {
  let name = ProcessInfo.processInfo.environment["LONGLINK_FUZZ"] ?? ""
  guard let target = FuzzTarget(rawValue: name) else {
    let names = FuzzTarget.allCases.map(\.rawValue).joined(separator: ", ")
    fatalError("LONGLINK_FUZZ names none of \(names)")
  }
  return target
}()

/// What libFuzzer calls before it looks at its arguments: writes the target's first inputs, and the
/// words that it may be made of, into the folder that the environment names.
@_cdecl("LLVMFuzzerInitialize")
@unsafe
public func fuzzBegins(
  _ count: UnsafeMutablePointer<CInt>?,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>?
) -> CInt {
  let environment = ProcessInfo.processInfo.environment
  guard let folder = environment["LONGLINK_FUZZ_SEEDS"],
    let vectors = environment["LONGLINK_FUZZ_VECTORS"]
  else { return 0 }
  do {
    let (folder, vectors) = (URL(fileURLWithPath: folder), URL(fileURLWithPath: vectors))
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for (index, input) in try FuzzCorpus.inputs(for: chosen, vectors: vectors).enumerated() {
      try Data(input).write(to: folder.appending(path: "seed-\(index)"))
    }
    try FuzzCorpus.words(for: chosen, vectors: vectors)
      .write(to: folder.appendingPathExtension("words"), atomically: true, encoding: .utf8)
  } catch {
    fatalError("no first inputs: \(error)")
  }
  return 0
}

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
