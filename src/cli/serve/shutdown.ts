import { errorMessage } from '../../platform/error.ts'
import type { CliContext } from '../context.ts'
import { EXIT_CODES } from '../exit.ts'
import type { ServeLog } from './log.ts'

/** The end of a service that was told to stop. */
export type StopSignal = {
  /** Resolves with the first signal to end. */
  readonly received: Promise<void>
  /** Listens no longer. */
  dispose(): void
}

/** Hears the first signal to end, and says what comes then; a second one ends the process at once. */
export function untilSignal(context: CliContext, log: ServeLog, says: string): StopSignal {
  const { promise: received, resolve } = Promise.withResolvers<void>()
  let isSignaled = false
  const onSignal = (signal: NodeJS.Signals) => {
    if (isSignaled) exitNow(context, log, signal)
    isSignaled = true
    log.info(`stopping: ${says}`, { signal })
    resolve()
  }
  context.signals.on('SIGTERM', onSignal)
  context.signals.on('SIGINT', onSignal)
  return {
    received,
    dispose() {
      context.signals.off('SIGTERM', onSignal)
      context.signals.off('SIGINT', onSignal)
    },
  }
}

function exitNow(context: CliContext, log: ServeLog, signal: NodeJS.Signals): never {
  log.warn('ended at once', { signal })
  log.flush()
  context.exit(EXIT_CODES.interrupted)
}

/**
 * Ends the process when what it still had to do takes longer, as where its database is away: others find out by
 * themselves what it had. Gives what calls that off.
 */
export function exitAfter(context: CliContext, ms: number, log: ServeLog): () => void {
  return context.clock.after(ms, () => {
    log.warn('ended before all was given back: others take it up when they notice')
    log.flush()
    context.exit(0)
  })
}

/**
 * Exits on an uncaught exception, because the state of the process is unknown afterwards; a service
 * manager restarts it. Returns a function that removes the listeners.
 */
export function exitOnFault(context: CliContext, log: ServeLog): () => void {
  const end = (error: unknown) => {
    const stack = error instanceof Error ? error.stack : undefined
    log.error('a fault inside ev ends it', { why: errorMessage(error), stack })
    log.flush()
    context.exit(EXIT_CODES.internal)
  }
  context.signals.on('unhandledRejection', end)
  context.signals.on('uncaughtException', end)
  return () => {
    context.signals.off('unhandledRejection', end)
    context.signals.off('uncaughtException', end)
  }
}

/** What libraries print goes to the log: stdout is for the first key alone. */
export function catchPrints(context: Pick<CliContext, 'console'>, log: ServeLog): void {
  const quiet = (...said: unknown[]) => log.debug(said.map(errorMessage).join(' '))
  const loud = (...said: unknown[]) => log.warn(said.map(errorMessage).join(' '))
  Object.assign(context.console, { log: quiet, info: quiet, debug: quiet, warn: loud, error: loud })
}
