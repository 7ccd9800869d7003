import type { Context } from 'hono'
import { type Clock, SECOND, sleep } from '../platform/clock.ts'
import type { Env } from './context.ts'
import type { Service } from './service.ts'
import { type Pieces, textStream } from './text-stream.ts'

/** What a client is told while it listens: `event` is its kind. */
export type StreamEvent = { readonly event: string; readonly data: object }

/** Proxies close what is silent for a minute, often for half of one. */
export const HEARTBEAT_MS = 15 * SECOND

/**
 * Answers with events as they happen (server-sent events). The next one is asked for when the client has taken the one
 * before, so what tells of a state tells the newest. `events` is called at once: what it throws is answered, and what it
 * throws later breaks the answer off. Its signal aborts when nobody listens any more, at the end too.
 */
export function eventStream(
  c: Context<Env>,
  { clock, log }: Pick<Service, 'clock' | 'log'>,
  events: (gone: AbortSignal) => AsyncIterable<StreamEvent>,
): Response {
  const headers = { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' }
  // Nobody would take them, nor say so.
  if (c.req.method === 'HEAD') return c.body(null, 200, headers)
  // They are long in coming, and that is no work: such a piece needs no turn.
  const make = <T>(piece: () => Promise<T>) => piece()
  return c.body(textStream(c, { clock, log }, piecesOf(clock, events), { make }), 200, headers)
}

/** A client that lost the connection comes again after so long. */
const BEGIN = `retry: ${3 * SECOND}\n\n`
/** A comment, which clients leave out. */
const HEARTBEAT = ':\n\n'

function piecesOf(clock: Clock, events: (gone: AbortSignal) => AsyncIterable<StreamEvent>): Pieces {
  const gone = new AbortController()
  const iterator = events(gone.signal)[Symbol.asyncIterator]()
  let isStarted = false
  let coming: Promise<IteratorResult<StreamEvent>> | null = null
  const comingInTime = async () => {
    coming ??= iterator.next()
    const isThere = new AbortController()
    const quiet = sleep(clock, HEARTBEAT_MS, AbortSignal.any([gone.signal, isThere.signal]))
    return Promise.race([coming, quiet]).finally(() => isThere.abort())
  }
  return {
    async next() {
      if (!isStarted) {
        isStarted = true
        return { value: BEGIN }
      }
      const next = await comingInTime()
      if (!next) return { value: HEARTBEAT }
      coming = null
      return next.done ? next : { value: textOf(next.value) }
    },
    async return() {
      gone.abort()
      // What fails now fails for nobody.
      coming?.catch(() => {})
      await iterator.return?.()
    },
  }
}

/** JSON has no line breaks of its own. */
const textOf = ({ event, data }: StreamEvent) =>
  `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
