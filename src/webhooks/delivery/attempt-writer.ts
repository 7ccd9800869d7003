import { type Database, isStorageError, writeConcurrent } from '../../db/database.ts'
import { Batcher } from '../../platform/batcher.ts'
import type { Clock } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import { retry } from '../../platform/retry.ts'
import { type NewAttempt, recordAttempts } from '../delivery-store.ts'
import { DEFAULT_DELIVERY_TIMINGS, type DeliveryTimings } from './delivery-timings.ts'

export type AttemptRecorder = {
  /** Resolves when it is durable: true; false: it was given up, as this has been stopped. Rejects where it cannot be written ever. */
  record(attempt: NewAttempt): Promise<boolean>
  /** Writes what has come until now, if it can be written at once, and nothing that comes later. */
  stop(): Promise<void>
}

export type RecorderParts = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly timings?: Pick<DeliveryTimings, 'retryMs'>
}

/** More in one transaction would keep others waiting. */
const GROUP_MAX = 200

/**
 * Writes down what came of attempts, together for as long as each turn of the event loop brings more: a commit of many
 * costs little more than one of one.
 */
export function attemptRecorder(deps: RecorderParts): AttemptRecorder {
  const { database, clock, log, timings = DEFAULT_DELIVERY_TIMINGS } = deps
  const stopping = new AbortController()
  const { signal } = stopping
  const batcher = new Batcher<NewAttempt, boolean>({
    ...{ clock, sizeMax: GROUP_MAX, whileBusy: true },
    async run(attempts) {
      const write = () =>
        writeConcurrent(database, trx => recordAttempts(trx, attempts, { now: clock.now() }))
      const onRetry = (error: unknown) => {
        const fields = { attempts: attempts.length, why: errorMessage(error) }
        log.error('deliveries: not written, tried again', fields)
      }
      const o = { clock, signal, isRetryable: isStorageError, delayMs: timings.retryMs, onRetry }
      const isDurable = await retry(write, o).then(
        () => true,
        error => {
          if (isStorageError(error)) return false
          throw error
        },
      )
      return attempts.map(() => isDurable)
    },
    // What is wrong with one is nothing to the others.
    onFailure: (_, { length }) => (length > 1 ? 'split' : 'reject'),
  })
  return {
    // What ends after the stop was ended by it, which says nothing of the endpoint.
    record: async attempt => !signal.aborted && batcher.add(attempt),
    async stop() {
      stopping.abort()
      await batcher.close()
    },
  }
}
