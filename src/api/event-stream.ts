import type { Context } from 'hono'
import { type Clock, SECOND, sleep } from '../platform/clock.ts'
import type { Env } from './context.ts'
import type { ServiceDeps } from './service.ts'
import { type ChunkSource, textStream } from './text-stream.ts'

/** A server-sent event: `event` is its type. */
export type StreamEvent = { readonly event: string; readonly data: object }

/** Proxies close connections that are idle for a minute, some after 30 seconds. */
export const HEARTBEAT_MS = 15 * SECOND

/**
 * Responds with server-sent events. The next event is pulled when the client has taken the previous
 * one, so an event with a state always has the newest one. `events` is called at once: an error it
 * throws becomes the response, and a later error aborts the response. Its signal aborts when the
 * client disconnects or the stream ends.
 */
export function eventStream(
  c: Context<Env>,
  { clock, log }: Pick<ServiceDeps, 'clock' | 'log'>,
  events: (signal: AbortSignal) => AsyncIterable<StreamEvent>,
): Response {
  const headers = { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' }
  // A response to HEAD has no reader that would take or cancel the events.
  if (c.req.method === 'HEAD') return c.body(null, 200, headers)
  // Waiting for an event is not work, so events bypass the limit on concurrent chunks.
  const produce = <T>(chunk: () => Promise<T>) => chunk()
  return c.body(textStream(c, { clock, log }, toChunks(clock, events), { produce }), 200, headers)
}

/** A client that loses the connection reconnects after this delay. */
const PREAMBLE = `retry: ${3 * SECOND}\n\n`
/** An SSE comment, which clients ignore. */
const HEARTBEAT = ':\n\n'

function toChunks(
  clock: Clock,
  events: (signal: AbortSignal) => AsyncIterable<StreamEvent>,
): ChunkSource {
  const controller = new AbortController()
  const iterator = events(controller.signal)[Symbol.asyncIterator]()
  let isStarted = false
  let pending: Promise<IteratorResult<StreamEvent>> | null = null
  const nextOrTimeout = async () => {
    pending ??= iterator.next()
    const settled = new AbortController()
    const timeout = sleep(clock, HEARTBEAT_MS, AbortSignal.any([controller.signal, settled.signal]))
    return Promise.race([pending, timeout]).finally(() => settled.abort())
  }
  return {
    async next() {
      if (!isStarted) {
        isStarted = true
        return { value: PREAMBLE }
      }
      const next = await nextOrTimeout()
      if (!next) return { value: HEARTBEAT }
      pending = null
      return next.done ? next : { value: formatEvent(next.value) }
    },
    async return() {
      controller.abort()
      // The client is gone, so a failure of the pending event is ignored.
      pending?.catch(() => {})
      await iterator.return?.()
    },
  }
}

/** JSON has no raw line breaks, so it fits one `data` line. */
const formatEvent = ({ event, data }: StreamEvent) =>
  `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
