@_exported public import LongLink
