// SPDX-License-Identifier: Apache-2.0

#if Operations
internal import LongLinkCLibrary
public import LongLinkCore
public import LongLinkDriver
internal import LongLinkTransport
public import Logging

/// The configuration of an operations port. Every field has a default.
public struct OperationsConfiguration: Sendable {
  /// The address to listen on, or `localhost`. Default `127.0.0.1`. An address that other machines
  /// can reach needs a `token`.
  ///
  /// The port speaks HTTP without encryption: put a proxy with TLS before it, unless the network is
  /// your own.
  public var host = "127.0.0.1"
  /// The port to listen on, 0 to 65,535; 0, the default, takes a free one.
  public var port = 0
  /// Names besides `host`, `localhost`, loopback addresses and the address that was connected to
  /// that the `Host` of a request may be, without a port. Default: none.
  ///
  /// Other requests are refused with 421, so that a web page cannot reach the port under a name of
  /// its own.
  public var names: [String] = []
  /// The secret that requests have to show, as `Authorization: Bearer` or as the password of
  /// `Basic`: 1 to 1,024 printable ASCII characters without spaces. Default nil: everyone who can
  /// connect is allowed everything.
  public var token: String?
  /// The names of methods for requests that have none of their own, because neither a generated
  /// service nor a route says it. In metrics, all others share the name `_OTHER`.
  public var methods: [MessageType: String] = [:]
  /// Whether the port tells the service manager that has started this process, such as systemd,
  /// when the server is ready, that its loops live, and when it begins to end. Default true.
  ///
  /// Without the variable `NOTIFY_SOCKET` in the environment there is nobody to tell.
  public var notifiesServiceManager = true
  /// Returns a variable of the environment in which a service manager says what it wants to hear.
  package var environment: @Sendable (String) -> String? = { name in
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }
  /// The directory for recordings of violations, and for those of `POST /recording`. It is made if
  /// there is none, in a directory that exists. Default nil: no file is written.
  ///
  /// Recordings are files `longlink-TIME-CAUSE.pcapng` that only their owner can read. Other files
  /// in the directory are left alone.
  public var recordingsDirectory: String?
  /// The most files with recordings: 1 to 10,000. Default 16. The oldest go first, those of
  /// `POST /recording` last.
  public var recordingsCount = 16
  /// The most bytes of all files with recordings together: 65,536 to 1,099,511,627,776. Default
  /// 256 MiB. While a file is written, it takes its room besides.
  public var recordingsBytes = 268_435_456
  /// The reasons of connections' ends, besides violations, for which a recording is written, as
  /// `/connections` names them: `heartbeat` and `reset`, for example. Default: none.
  public var recordingReasons: Set<String> = []
  /// The port's logger. Tokens are never logged. Default: a logger with the label `longlink.ops`.
  public var logger = Logger(label: "longlink.ops")

  /// Makes a configuration with the defaults.
  public init() {}

  /// Throws `invalidConfiguration`, with the field's name, if a value is out of range.
  public func validate() throws(LongLinkError) {
    if !(0...65_535).contains(port) { throw .configuration("port", "\(port) is not a port") }
    if host.isEmpty { throw .configuration("host", "it is empty") }
    for (index, name) in names.enumerated() where name.isEmpty {
      throw .configuration("names[\(index)]", "it is empty")
    }
    try validateRecordings()
    guard let token else {
      guard HostRule.isLoopback(host) else {
        throw .configuration("token", "\(host) is not a loopback address, so it needs a token")
      }
      return
    }
    guard (1...1_024).contains(token.utf8.count), token.utf8.allSatisfy({ 0x21...0x7E ~= $0 })
    else {
      throw .configuration(
        "token", "it has to be 1 to 1,024 printable ASCII characters without spaces")
    }
  }

  private func validateRecordings() throws(LongLinkError) {
    if let recordingsDirectory, recordingsDirectory.isEmpty || recordingsDirectory.utf8.contains(0)
    {
      throw .configuration("recordingsDirectory", "it is empty or contains a NUL")
    }
    if !(1...10_000).contains(recordingsCount) {
      throw .configuration("recordingsCount", "\(recordingsCount) is not between 1 and 10,000")
    }
    if !(65_536...(1 << 40)).contains(recordingsBytes) {
      throw .configuration(
        "recordingsBytes", "\(recordingsBytes) is not between 65,536 and 1,099,511,627,776")
    }
    for reason in recordingReasons.sorted() {
      switch EndReason(rawValue: reason) {
      case .violation: throw .configuration("recordingReasons", "violations are always recorded")
      // A file with this cause is one of `POST /recording`.
      case .operator: throw .configuration("recordingReasons", "`operator` has no recordings")
      case nil:
        throw .configuration(
          "recordingReasons", "\(PeerText(reason)) is no reason of a connection's end")
      default: break
      }
    }
  }
}
#endif
