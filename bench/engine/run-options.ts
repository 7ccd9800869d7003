/** Options of a measured process. */
export type RunOptions = {
  readonly program: Program
  readonly addresses: readonly string[]
  readonly dnsAddress: string
  readonly smtpPort: number
}

/** `bare` is the bare probe and `c` the one in C, `engine` is `verifyMany`, `bulk` is `ev bulk`. */
export type Program = 'bare' | 'c' | 'engine' | 'bulk'

/** Receives each result: whether the mailbox exists, or null if that is unknown. */
export type OnResult = (address: string, deliverable: boolean | null) => void

/** Measurements of a process. */
export type Run = ResultFaults & {
  /** From the start to the last result; of `ev bulk`, the duration of the process. */
  readonly seconds: number
  /** User and system time until the last connection is closed. */
  readonly cpuMs: number
  /** Of the whole process, including its code and the list. */
  readonly peakRssMiB: number
}

/** Numbers of addresses without a result, with more than one, and with a wrong one. */
export type ResultFaults = {
  readonly missing: number
  readonly repeated: number
  readonly wrong: number
}
