import type { MxRecord } from './resolver.ts'

/** Where mail for a domain goes (RFC 5321 §5.1, RFC 7505). */
export type Route =
  /** Hosts by preference, then by name: a stable order, so that equal sets are equal. A host of equal preference is chosen by chance when dialling. */
  | { readonly kind: 'mx'; readonly hosts: readonly MxRecord[] }
  /** No MX, but the domain itself has an address: it is its own exchanger. */
  | { readonly kind: 'implicit'; readonly host: string }
  /** RFC 7505: the domain says that it takes no mail. */
  | { readonly kind: 'null-mx' }
  /** NXDOMAIN. */
  | { readonly kind: 'no-domain' }
  /** The domain exists and has neither MX nor address. */
  | { readonly kind: 'no-mail' }
  /** DNS failed: nothing is known. */
  | { readonly kind: 'unknown'; readonly fault: 'server' | 'timeout' }
