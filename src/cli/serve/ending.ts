import { systemClock } from '../../base/clock.ts'
import { messageOf } from '../../base/error.ts'
import { EXIT_CODES } from '../exit.ts'
import type { ServeLog } from './log.ts'

/** Resolves with the first signal to end, and says what comes then; a second one ends the process at once. */
export function untilTold(log: ServeLog, says: string): Promise<void> {
  return new Promise(resolve => {
    let isTold = false
    const hear = (signal: NodeJS.Signals) => {
      if (isTold) endNow(log, signal)
      isTold = true
      log.info(`stopping: ${says}`, { signal })
      resolve()
    }
    process.on('SIGTERM', hear)
    process.on('SIGINT', hear)
  })
}

function endNow(log: ServeLog, signal: NodeJS.Signals): never {
  log.warn('ended at once', { signal })
  log.flush()
  process.exit(EXIT_CODES.interrupted)
}

/**
 * Ends the process when what it still had to do takes longer, as where its database is away: others find out by
 * themselves what it had. Gives what calls that off.
 */
export function endAfter(ms: number, log: ServeLog): () => void {
  return systemClock.after(ms, () => {
    log.warn('ended before all was given back: others take it up when they notice')
    log.flush()
    process.exit(0)
  })
}

/** A fault that nobody expected leaves nobody knows what: whoever watches over the process starts it anew. */
export function endOnFault(log: ServeLog): void {
  const end = (error: unknown) => {
    const stack = error instanceof Error ? error.stack : undefined
    log.error('a fault inside ev ends it', { why: messageOf(error), stack })
    log.flush()
    process.exit(EXIT_CODES.internal)
  }
  process.on('unhandledRejection', end)
  process.on('uncaughtException', end)
}

/** What libraries print goes to the log: stdout is for the first key alone. */
export function catchPrints(log: ServeLog): void {
  const quiet = (...said: unknown[]) => log.debug(said.map(messageOf).join(' '))
  const loud = (...said: unknown[]) => log.warn(said.map(messageOf).join(' '))
  Object.assign(console, { log: quiet, info: quiet, debug: quiet, warn: loud, error: loud })
}
