import { type Database, isStorageError } from '../../db/database.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import { retry } from '../../platform/retry.ts'

export type JobStarterDeps = {
  readonly database: Database
  readonly log: Log
  /** False: what cannot be stored now is not tried again. */
  readonly keepsTrying: boolean
  /** Takes a job up; `isOver` tells when that is not wanted any more. */
  readonly begin: (jobId: string, isDone: () => boolean) => Promise<void>
  readonly onFailure: (jobId: string, error: unknown) => void
  readonly stopping: AbortSignal
  /** Wait after a job could not be taken up because of the disk. */
  readonly retryMs: number
}

/** Jobs that are being taken up, each once at a time. */
export class JobStarter {
  readonly #deps: JobStarterDeps
  readonly #runs = new Map<string, { run: Promise<void>; dropped: boolean }>()

  constructor(deps: JobStarterDeps) {
    this.#deps = deps
  }

  get size(): number {
    return this.#runs.size
  }

  take(jobId: string): void {
    const { stopping, begin, onFailure } = this.#deps
    if (stopping.aborted || this.#runs.has(jobId)) return
    const taking = { run: Promise.resolve(), dropped: false }
    this.#runs.set(jobId, taking)
    const isDone = () => taking.dropped || stopping.aborted
    taking.run = begin(jobId, isDone)
      .catch(error => onFailure(jobId, error))
      .finally(() => this.#runs.delete(jobId))
  }

  drop(jobId: string): void {
    const taking = this.#runs.get(jobId)
    if (taking !== undefined) taking.dropped = true
  }

  /** Runs one step of it, again and again while that cannot be stored. */
  retryWhileBusy<T>(run: () => Promise<T>, isDone: () => boolean): Promise<T> {
    const { keepsTrying, database, log, stopping, retryMs } = this.#deps
    return retry(run, {
      ...{ clock: database.clock, signal: stopping, delayMs: retryMs },
      isRetryable: error => keepsTrying && !isDone() && isStorageError(error),
      onRetry: error =>
        log.error('a job cannot be taken up now; that is tried again', {
          error: errorMessage(error),
        }),
    })
  }

  /** Resolves when none is being taken up. */
  async idle(): Promise<void> {
    await Promise.all([...this.#runs.values()].map(({ run }) => run))
  }
}
