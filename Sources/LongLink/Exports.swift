@_exported public import LongLinkConnection
@_exported public import LongLinkCore
@_exported public import LongLinkTransport
