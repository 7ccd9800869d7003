import type { Database } from '../db/database.ts'
import { Batcher } from '../platform/batcher.ts'
import { MINUTE, SECOND } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { type Log, type LogEvent, writeLog } from '../platform/log.ts'

/** Pending writes; beyond it rows are dropped: what they say is found out again. */
const PENDING_MAX = 5_000

export type WriterTimings = {
  /** Rows of this period are written in one batch. */
  readonly batchMs: number
  /** Interval between deletions of expired rows. */
  readonly deleteEveryMs: number
}

export const DEFAULT_WRITER_TIMINGS: WriterTimings = {
  batchMs: SECOND,
  deleteEveryMs: 10 * MINUTE,
}

/** Dependencies of the stores of data about mail servers. */
export type ServerDataDeps = {
  readonly database: Database
  readonly log: Log
  /** The network of the mail servers; null for the public one. Each network has its own data. */
  readonly network: string | null
}

type BackgroundWriterDeps<T> = {
  readonly database: Database
  readonly log: Log
  /** Written to the log if a batch fails; its rows are dropped. */
  readonly failed: LogEvent
  /** A later row with the same key replaces a pending one. */
  readonly keyOf: (row: T) => string
  readonly put: (rows: readonly T[]) => Promise<void>
  /** Deletes expired rows. */
  readonly deleteExpired: () => Promise<void>
  readonly timings?: WriterTimings
}

/** Writes rows that other processes may use, but that nothing waits for and that may be lost. */
export class BackgroundWriter<T> {
  readonly #writes: Batcher<T>
  #deletedAt = Number.NEGATIVE_INFINITY

  constructor(deps: BackgroundWriterDeps<T>) {
    const { database, log, failed, keyOf, put, deleteExpired } = deps
    const { batchMs, deleteEveryMs } = deps.timings ?? DEFAULT_WRITER_TIMINGS
    const { clock } = database
    this.#writes = new Batcher<T>({
      clock,
      sizeMax: PENDING_MAX,
      waitMs: batchMs,
      keyOf,
      run: async rows => {
        await put(rows)
        if (clock.monotonicNow() - this.#deletedAt < deleteEveryMs) return
        this.#deletedAt = clock.monotonicNow()
        await deleteExpired()
      },
      onFailure(error) {
        writeLog(log, failed, { error: errorMessage(error) })
        return 'reject'
      },
    })
  }

  add(row: T): void {
    if (this.#writes.pending < PENDING_MAX) void this.#writes.add(row)
  }

  /** Writes pending rows; later ones are dropped. */
  close(): Promise<unknown> {
    return this.#writes.close()
  }
}
