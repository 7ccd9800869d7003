import type { CliContext } from '../context.ts'
import { EXIT_CODES } from '../exit.ts'

/** Ctrl-C lets what is under way come to its end; a second one does not. */
export function interruption(context: CliContext): { signal: AbortSignal; dispose: () => void } {
  const stopping = new AbortController()
  const stop = () => {
    if (stopping.signal.aborted) context.exit(EXIT_CODES.interrupted)
    stopping.abort()
  }
  context.signals.on('SIGINT', stop)
  context.signals.on('SIGTERM', stop)
  return {
    signal: stopping.signal,
    dispose() {
      context.signals.off('SIGINT', stop)
      context.signals.off('SIGTERM', stop)
    },
  }
}
