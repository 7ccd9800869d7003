import { breathe, type Clock, sleep } from '../../base/clock.ts'
import { messageOf } from '../../base/error.ts'
import type { Log } from '../../base/log.ts'
import { type Database, isOfStorage, writeBeside } from '../../store/database.ts'
import { type NewAttempt, recordAttempts } from '../../store/event/deliveries.ts'
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
export function attemptRecorder(parts: RecorderParts): AttemptRecorder {
  const { database, clock, log, timings = DEFAULT_DELIVERY_TIMINGS } = parts
  const gathered: Entry[] = []
  const stopping = new AbortController()
  const { signal } = stopping
  let writing: Promise<void> | null = null
  let isGivenUp = false

  const begin = () => {
    writing ??= writeNext().finally(() => {
      writing = null
      if (gathered.length > 0) begin()
    })
  }
  const writeNext = async () => {
    // Nothing else runs during a commit, so what comes gathers before it.
    let before: number
    do {
      before = gathered.length
      await breathe()
    } while (gathered.length > before && gathered.length < GROUP_MAX)
    await writeGroup(gathered.splice(0, GROUP_MAX))
  }
  const writeGroup = async (group: readonly Entry[]): Promise<void> => {
    try {
      const isDurable = await patiently(group)
      for (const { resolve } of group) resolve(isDurable)
    } catch (error) {
      if (group.length === 1) group[0]?.reject(error)
      // What is wrong with one is nothing to the others.
      else for (const entry of group) await writeGroup([entry])
    }
  }
  /** While nothing can be written, it is tried again and again, however long; after a stop only once. */
  const patiently = async (group: readonly Entry[]): Promise<boolean> => {
    const attempts = group.map(({ attempt }) => attempt)
    while (!isGivenUp) {
      try {
        await writeBeside(database, trx => recordAttempts(trx, attempts, { now: clock.now() }))
        return true
      } catch (error) {
        if (!isOfStorage(error)) throw error
        const fields = { attempts: group.length, why: messageOf(error) }
        log.error('deliveries: not written, tried again', fields)
        isGivenUp = signal.aborted
        await sleep(clock, timings.retryMs, signal)
      }
    }
    return false
  }
  return {
    async record(attempt) {
      // What ends later was ended by the stop, which says nothing of whoever was asked.
      if (signal.aborted) return false
      const { promise, resolve, reject } = Promise.withResolvers<boolean>()
      gathered.push({ attempt, resolve, reject })
      begin()
      return promise
    },
    async stop() {
      stopping.abort()
      while (writing !== null) await writing
    },
  }
}

type Entry = {
  readonly attempt: NewAttempt
  readonly resolve: (isDurable: boolean) => void
  readonly reject: (error: unknown) => void
}
