public import LongLinkConnection

/// What an API client is to do. Every field has a default.
public struct APIConfiguration: Sendable {
  /// The widest word on how requests are made. Default: it says nothing.
  public var policy: RequestPolicy
  /// The most bytes that cached answers may take, with their keys and 256 bytes for each. Default
  /// 20 MiB.
  public var cacheBytes: Int
  /// The texts in which errors are told to people. Default: English.
  public var texts: ErrorTexts

  /// Makes a configuration.
  public init(
    policy: RequestPolicy = RequestPolicy(), cacheBytes: Int = 20_971_520,
    texts: ErrorTexts = .english
  ) {
    self.policy = policy
    self.cacheBytes = cacheBytes
    self.texts = texts
  }

  /// Throws `invalidConfiguration`, naming the field, when the configuration cannot work.
  public func validate() throws(LongLinkError) {
    if cacheBytes < 0 { throw .configuration("cacheBytes", "it is negative") }
  }
}
