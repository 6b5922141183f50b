// SPDX-License-Identifier: Apache-2.0

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// A folder of one test's own, short enough in its name for the path of a socket.
struct TemporaryFolder: ~Copyable {
  let path: String

  init() {
    // mkdtemp(3) wants six of them.
    let end = String(repeating: "X", count: 6)
    var template = Array("/tmp/longlink-\(end)".utf8CString)
    path = unsafe String(cString: mkdtemp(&template)!)
  }

  deinit {
    unsafe rmdir(path)
  }
}

/// The descriptors that the process has open, and what they lead to where the system tells; without
/// timers, which the runtime opens when it pleases.
func openDescriptors() -> [String] {
  allDescriptors().filter { !isTimer($0) }
}

/// How many timers the process has open, where they are descriptors.
func openTimers() -> Int {
  allDescriptors().count(where: isTimer)
}

private func isTimer(_ description: String) -> Bool {
  description.hasSuffix("[timerfd]")
}

private func allDescriptors() -> [String] {
  let open = (0..<1024).filter { fcntl(CInt($0), F_GETFD) != -1 }
  return open.map { descriptor in
    unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      unsafe buffer.initialize(repeating: 0)
      _ = unsafe readlink("/proc/self/fd/\(descriptor)", buffer.baseAddress!, buffer.count - 1)
      return unsafe "\(descriptor) \(String(cString: buffer.baseAddress!))"
    }
  }
}

/// Why nothing can be sent over the IPv6 loopback here; nil where it can.
let ipv6Problem: String? = {
  let descriptor = socket(AF_INET6, CInt(SOCK_STREAM.rawValue), 0)
  guard descriptor >= 0 else { return "the system has no IPv6" }
  defer { close(descriptor) }
  var address = sockaddr_in6()
  address.sin6_family = sa_family_t(AF_INET6)
  address.sin6_addr = in6addr_loopback
  let isThere = unsafe withUnsafeBytes(of: &address) { bytes in
    unsafe bind(
      descriptor,
      bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self),
      socklen_t(bytes.count)
    ) == 0
  }
  return isThere ? nil : "the machine has no address ::1"
}()
