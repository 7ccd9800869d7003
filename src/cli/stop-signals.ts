import { SECOND } from '../platform/clock.ts'
import type { CliContext } from './context.ts'
import { EXIT_CODES } from './exit.ts'
import { terminalWidth, wrapLines } from './width.ts'

export type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

/** SIGHUP reloads lists and certificates in the commands that use the default. */
const SIGNALS: readonly StopSignal[] = ['SIGINT', 'SIGTERM']

/** For commands that reload nothing: a closed terminal stops them too. */
export const SIGNALS_WITH_HANGUP: readonly StopSignal[] = [...SIGNALS, 'SIGHUP']

/**
 * A signal this soon after the first one belongs to the same request: timeout(1) and some
 * supervisors signal a process and its group. A user takes longer to press Ctrl-C again.
 */
const SAME_REQUEST_MS = SECOND / 10

/**
 * Calls `stop` with the first of the signals, and `force` with each later request to stop.
 * Returns a function that removes the listeners.
 */
export function onStopSignal(
  { clock, signals }: Pick<CliContext, 'clock' | 'signals'>,
  stop: (signal: StopSignal) => void,
  force: (signal: StopSignal) => void,
  names = SIGNALS,
): () => void {
  let stoppedAt: number | null = null
  const listeners = names.map(signal => {
    const listener = () => {
      const now = clock.monotonicNow()
      if (stoppedAt === null) {
        stoppedAt = now
        stop(signal)
      } else if (now - stoppedAt >= SAME_REQUEST_MS) force(signal)
    }
    signals.on(signal, listener)
    return () => signals.off(signal, listener)
  })
  return () => {
    for (const remove of listeners) remove()
  }
}

type Interruption = {
  /** Aborts with the first SIGINT or SIGTERM. */
  readonly signal: AbortSignal
  /** Removes the listeners. */
  dispose(): void
}

/**
 * Says on stderr at the first SIGINT or SIGTERM what the command still does, such as `saving
 * results`, and aborts the signal. A second one exits at once.
 */
export function startInterruption(context: CliContext, unfinished: string): Interruption {
  const stopping = new AbortController()
  const stop = () => {
    sayStopping(context, unfinished)
    stopping.abort()
  }
  const dispose = onStopSignal(context, stop, () => context.exit(EXIT_CODES.interrupted))
  return { signal: stopping.signal, dispose }
}

/** Prints at once that a command stops, and what it still does. */
export function sayStopping(context: Pick<CliContext, 'env' | 'stderr'>, unfinished: string): void {
  const text = `Stopping: ${unfinished}. Press Ctrl-C again to stop at once.`
  context.stderr.write(`${wrapLines(text, terminalWidth(context, context.stderr))}\n`)
}
