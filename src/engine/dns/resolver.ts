/** The DNS, as a door to the world. */
export interface Resolver {
  /**
   * Asks one question; `name` in A-labels. Never throws for what DNS says or fails to say: that is a `DnsFault`. A question
   * whose `signal` aborts is answered `timeout`.
   */
  resolve<T extends RecordType>(name: string, type: T, signal?: AbortSignal): Promise<DnsAnswer<T>>
}

/** A name in the form by which names are compared: lower case, without the dot of the root. */
export const plainName = (name: string) => name.toLowerCase().replace(/\.$/, '')

/** The strings of a TXT record come joined, as RFC 7208 §3.3 reads them; a PTR is a host name as the zone has it. */
export type RecordType = 'MX' | 'A' | 'AAAA' | 'TXT' | 'PTR'
export type MxRecord = { readonly preference: number; readonly host: string }
export type RecordOf<T extends RecordType> = T extends 'MX' ? MxRecord : string

export type DnsAnswer<T extends RecordType> =
  | { readonly records: readonly RecordOf<T>[]; readonly additional?: readonly HostAddresses[] }
  | DnsFailure

/** `detail` says, in words for people, why an answer of the server was not believed. */
export type DnsFailure = { readonly fault: DnsFault; readonly detail?: string }

/** NXDOMAIN or NODATA: an answer that says that something does not exist. */
export const isNegative = (answer: DnsAnswer<RecordType>): boolean =>
  'fault' in answer && (answer.fault === 'no-name' || answer.fault === 'no-data')

/** Addresses of one family of a host that an MX record names, sent along with the MX records. */
export type HostAddresses = {
  readonly host: string
  readonly type: 'A' | 'AAAA'
  readonly addresses: readonly string[]
}

/**
 * `no-name`: NXDOMAIN. `no-data`: the name exists, the type does not. Both are answers.
 * `server`: SERVFAIL, REFUSED, garbage. `timeout`: nobody answered. Neither says anything of the name.
 */
export type DnsFault = 'no-name' | 'no-data' | 'server' | 'timeout'
