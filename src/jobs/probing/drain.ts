import type { Clock } from '../../platform/clock.ts'
import type { ActiveJob } from '../worker/active-jobs.ts'
import type { WorkerTimings } from '../worker/worker-timings.ts'

/** How a conversation is ended before its time: asked to come to its end, and cut off. */
export type DrainSignal = {
  readonly drain: AbortSignal
  readonly signal: AbortSignal
  /** It has ended. */
  readonly done: () => void
}

type Ends = {
  readonly database: { readonly clock: Clock }
  readonly timings: Pick<WorkerTimings, 'drainMs'>
  readonly stopping: AbortSignal
  readonly abort: AbortSignal
  readonly lost: AbortSignal
}

/** A conversation ends with the worker, at once when others have what it asks about, or when nobody wants to know any more: all whose items it has are over. */
export function createDrainSignal(
  { database, stopping, abort, lost, timings }: Ends,
  lists: ReadonlySet<ActiveJob>,
): DrainSignal {
  const drain = new AbortController()
  const end = new AbortController()
  let cancelTimer = () => {}
  const onStop = () => drain.abort()
  const onAbort = () => end.abort()
  const onDone = () => {
    if (drain.signal.aborted || [...lists].some(({ over }) => !over.aborted)) return
    drain.abort()
    cancelTimer = database.clock.after(timings.drainMs, onAbort)
  }
  const heard: [AbortSignal, () => void][] = [
    [stopping, onStop],
    [abort, onAbort],
    [lost, onAbort],
    ...[...lists].map(({ over }): [AbortSignal, () => void] => [over, onDone]),
  ]
  for (const [signal, call] of heard) {
    if (signal.aborted) call()
    else signal.addEventListener('abort', call, { once: true })
  }
  const done = () => {
    cancelTimer()
    for (const [signal, call] of heard) signal.removeEventListener('abort', call)
  }
  return { drain: drain.signal, signal: end.signal, done }
}
