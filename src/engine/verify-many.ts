import { AsyncQueue } from '../platform/async-queue.ts'
import type { Clock } from '../platform/clock.ts'
import { EvError } from '../platform/error.ts'
import { withDeadline } from './deadline.ts'
import type { Sink } from './scheduler/feed.ts'
import { type SchedulerEngine, WINDOW_MAX } from './scheduler/run.ts'
import { Scheduler } from './scheduler/scheduler.ts'
import { TextFeed } from './text-feed.ts'
import type { Result } from './verdict/verdict.ts'

export type ManyOptions = {
  readonly signal?: AbortSignal
  readonly checkSmtp?: boolean
  readonly forceRefresh?: boolean
  /** As in `VerifyOptions`. */
  readonly cacheScope?: string | null
  /** False: a greylisted address ends as `greylisted` at once. */
  readonly wait?: boolean
  /**
   * True: a client waits for the results, so their connections take precedence over those of lists.
   */
  readonly urgent?: boolean
  /** Maximum number of addresses in flight, those in DNS lookups and in waits included. */
  readonly windowMax?: number
}

type StreamOptions = ManyOptions & {
  readonly concurrency: number
  readonly greylistDelayMs: number | null
  readonly clock: Clock
  /** Aborts when the engine is closed. */
  readonly closing: AbortSignal
}

/**
 * Yields the results of a stream of addresses in order of completion, one for each text. An internal
 * failure becomes the result of its address. If even that fails, throws an EvError that names the
 * cause, after the results that are ready.
 */
export async function* streamResults(
  engine: SchedulerEngine,
  texts: AsyncIterable<string> | Iterable<string>,
  options: StreamOptions,
): AsyncGenerator<Result> {
  const { clock, signal, closing, wait = true, urgent = false } = options
  const { checkSmtp = true, forceRefresh = false, cacheScope = null } = options
  const stop = new AbortController()
  const ending = withDeadline(clock, null, [signal, closing, stop.signal])
  const results = new AsyncQueue<Result>()
  const scheduler = new Scheduler(engine, {
    clock,
    wait,
    urgent,
    concurrency: options.concurrency,
    greylistDelayMs: options.greylistDelayMs,
    windowMax: windowFor(options),
  })
  const feed = new TextFeed(texts, ending.signal)
  const run = scheduler
    .run(feed, toSink(results), {
      canRefuse: false,
      route: { checkSmtp, forceRefresh, cacheScope },
      signal: ending.signal,
    })
    .finally(() => results.end())
  run.catch(() => {})
  try {
    for (;;) {
      const result = results.take() ?? (await results.next())
      signal?.throwIfAborted()
      if (closing.aborted) throw new EvError('interrupted', 'The engine was closed.')
      if (result === null) break
      scheduler.refill()
      yield result
    }
    await run
  } finally {
    stop.abort()
    feed.close()
  }
}

function windowFor({ windowMax = WINDOW_MAX }: ManyOptions): number {
  if (Number.isInteger(windowMax) && windowMax >= 1) return windowMax
  throw new EvError('usage', `windowMax is ${windowMax}; it takes a whole number from 1.`)
}

/** Puts the results into a queue. The scheduler keeps addresses that are postponed. */
const toSink = (results: AsyncQueue<Result>): Sink<null> => ({
  get held() {
    return results.size
  },
  decided: (_, result) => results.put(result),
  postponed: () => false,
  // An interrupted stream ends with an error, which stands for all addresses without a result.
  refused() {},
  drained: () => 0,
})
