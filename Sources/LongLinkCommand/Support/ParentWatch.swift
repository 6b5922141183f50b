import Foundation

/// Ends the process when its standard input does: for a server that must not outlive the process
/// which started it, and holds the other end.
enum ParentWatch {
  static func start() {
    Thread.detachNewThread {
      let input = FileHandle.standardInput
      while let data = try? input.read(upToCount: 1), !data.isEmpty {}
      exit(ExitStatus.failure)
    }
  }
}
