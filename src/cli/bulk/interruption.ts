import { EXIT_CODES } from '../exit.ts'

/** Ctrl-C lets what is under way come to its end; a second one does not. */
export function interruption(): { signal: AbortSignal; dispose: () => void } {
  const stopping = new AbortController()
  const stop = () => {
    if (stopping.signal.aborted) process.exit(EXIT_CODES.interrupted)
    stopping.abort()
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  return {
    signal: stopping.signal,
    dispose() {
      process.off('SIGINT', stop)
      process.off('SIGTERM', stop)
    },
  }
}
