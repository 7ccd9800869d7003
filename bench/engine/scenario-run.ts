/** What one measured process is asked to do. */
export type Errand = {
  readonly way: Way
  readonly addresses: readonly string[]
  readonly dnsAddress: string
  readonly smtpPort: number
  readonly sessionsPerHost: number
  readonly recipientsPerSession: number
  readonly concurrency: number
}

/** `naive-bare` is the naive way without the question whether the domain takes everything. */
export type Way = 'ours' | 'naive' | 'naive-bare'

/** Takes each result as it comes: whether mail to the address would be delivered; null where nobody knows. */
export type Told = (address: string, deliverable: boolean | null) => void

/** What one measured process says of itself. */
export type Run = {
  /** From the first address to the last result. */
  readonly seconds: number
  /** User and system time until the last connection is closed. */
  readonly cpuMs: number
  /** Of the whole process, its code and list included. */
  readonly peakRssMiB: number
  /** Addresses without a result, with more than one, or with a wrong one. */
  readonly missing: number
  readonly repeated: number
  readonly wrong: number
}
