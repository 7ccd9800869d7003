/** Options of a measured process. */
export type RunOptions = {
  readonly variant: Variant
  readonly addresses: readonly string[]
  readonly dnsAddress: string
  readonly smtpPort: number
  readonly sessionsPerHost: number
  readonly recipientsPerSession: number
  readonly concurrency: number
}

/** `naive-bare` does not probe for a catch-all. */
export type Variant = 'ours' | 'naive' | 'naive-bare'

/** Receives each result: whether the mailbox exists, or null if that is unknown. */
export type OnResult = (address: string, deliverable: boolean | null) => void

/** Measurements of a process. */
export type Run = {
  /** From the start to the last result. */
  readonly seconds: number
  /** User and system time until the last connection is closed. */
  readonly cpuMs: number
  /** Of the whole process, including its code and the list. */
  readonly peakRssMiB: number
  /** Addresses without a result, with more than one, or with a wrong one. */
  readonly missing: number
  readonly repeated: number
  readonly wrong: number
}
