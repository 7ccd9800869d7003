import type { Check } from '../../doctor/doctor.ts'
import { type Clock, MINUTE } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import type { Examination } from './source.ts'

export type DoctorCacheDeps = {
  readonly clock: Clock
  readonly log: Log
  /** The doctor at work; an abort ends it soon. */
  readonly examine: (signal: AbortSignal) => AsyncIterable<Check>
}

/** Has the doctor come when somebody looks. */
export interface DoctorCache {
  look(): Examination
  again(): void
  /** Ends what is under way; nothing begins any more. */
  close(): Promise<void>
}

/** What was found longer ago is looked for anew. */
const OLD_MS = 10 * MINUTE
/** Mail servers and block lists are asked each time, and should not be asked for a click. */
const BEGIN_EVERY_MS = MINUTE

/** One run at a time, behind whoever looks. */
export function createDoctorCache({ clock, log, examine }: DoctorCacheDeps): DoctorCache {
  const closing = new AbortController()
  let known: Examination = { checks: [], at: null, isRunning: false, fault: null }
  let startedAt = Number.NEGATIVE_INFINITY
  let endedAt = Number.NEGATIVE_INFINITY
  let running: Promise<void> = Promise.resolve()

  const run = async () => {
    const checks: Check[] = []
    const isFirst = known.at === null
    try {
      for await (const check of examine(closing.signal)) {
        checks.push(check)
        if (isFirst) known = { ...known, checks: [...checks] }
      }
      endedAt = clock.monotonicNow()
      known = { checks, at: clock.now(), isRunning: false, fault: null }
    } catch (error) {
      log.error('the examination of this machine failed', { why: errorMessage(error) })
      known = { ...known, isRunning: false, fault: errorMessage(error) }
    }
  }
  const again = () => {
    const isSoon = clock.monotonicNow() - startedAt < BEGIN_EVERY_MS
    if (known.isRunning || isSoon || closing.signal.aborted) return
    startedAt = clock.monotonicNow()
    known = { ...known, isRunning: true }
    running = run()
  }
  return {
    again,
    look() {
      if (clock.monotonicNow() - endedAt > OLD_MS) again()
      return known
    },
    close() {
      closing.abort()
      return running
    },
  }
}
