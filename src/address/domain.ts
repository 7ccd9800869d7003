/** A domain in both its forms, so that nobody converts twice. */
export type Domain = {
  /** A-labels in lower case: what DNS and SMTP use. For an address literal: the literal with its brackets. */
  readonly ascii: string
  /** U-labels: what people read. */
  readonly unicode: string
  /** What kind of name it is; `literal` is `[192.0.2.1]` or `[IPv6:…]`; `special` is a name of RFC 6761 (and RFC 7686, 8375, 9476) that no public DNS answers. */
  readonly kind: 'name' | 'literal' | 'special'
}
