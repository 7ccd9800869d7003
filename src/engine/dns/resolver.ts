/** The DNS client interface. */
export interface Resolver {
  /**
   * Looks up one record type of `name`, in A-labels. DNS errors are returned as a `DnsFault`, never
   * thrown. An aborted query returns `timeout`.
   */
  resolve<T extends RecordType>(name: string, type: T, signal?: AbortSignal): Promise<DnsAnswer<T>>
  /** Returns the answer that `resolve` has in its cache, without waiting; undefined if none. */
  cached?<T extends RecordType>(name: string, type: T): DnsAnswer<T> | undefined
}

/** Returns the form for comparisons: lower case, without the trailing dot. */
export function plainName(name: string): string {
  const lower = name.toLowerCase()
  return lower.endsWith('.') ? lower.slice(0, -1) : lower
}

/** TXT strings are joined (RFC 7208 §3.3); a PTR is the host name as in the zone. */
export type RecordType = 'MX' | 'A' | 'AAAA' | 'TXT' | 'PTR'
export type MxRecord = { readonly preference: number; readonly host: string }
export type RecordOf<T extends RecordType> = T extends 'MX' ? MxRecord : string

export type DnsAnswer<T extends RecordType> =
  | {
      readonly records: readonly RecordOf<T>[]
      readonly ttlMs?: number
      readonly additional?: readonly HostAddresses[]
    }
  | DnsFailure

/**
 * `detail` is set if the answer was not trusted, and explains why to people. `isOurs` is true if no
 * query could be sent, because this process has no free file descriptor. `ttlMs`, here and of
 * records, is how long the zone allows the answer to be cached; omitted if it is not known. `alias` is
 * the end of a chain of CNAME records in an answer that does not say what this name has.
 */
export type DnsFailure = {
  readonly fault: DnsFault
  readonly ttlMs?: number
  readonly detail?: string
  readonly isOurs?: boolean
  readonly alias?: string
}

/** Whether an answer is NXDOMAIN or NODATA. */
export const isNegative = (answer: DnsAnswer<RecordType>): boolean =>
  'fault' in answer && (answer.fault === 'no-name' || answer.fault === 'no-data')

/** Addresses of an MX host, one family, from the additional section of the MX answer. */
export type HostAddresses = {
  readonly host: string
  readonly type: 'A' | 'AAAA'
  readonly addresses: readonly string[]
  readonly ttlMs?: number
}

/**
 * `no-name`: NXDOMAIN. `no-data`: the name exists without this record type. Both are answers.
 * `server`: SERVFAIL, REFUSED or garbage. `timeout`: no reply. Both say nothing about the name.
 */
export type DnsFault = 'no-name' | 'no-data' | 'server' | 'timeout'
