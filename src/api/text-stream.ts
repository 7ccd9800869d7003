import type { Context } from 'hono'
import { type Clock, MINUTE, yieldToEventLoop } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { type Log, writeLog } from '../platform/log.ts'
import { Semaphore } from '../platform/semaphore.ts'
import type { Env } from './context.ts'
import { API_LOG } from './telemetry.ts'

/** A reader that takes nothing for this long is gone or stalled. */
export const READER_TIMEOUT_MS = MINUTE

type Deps = { readonly clock: Clock; readonly log: Log }

/**
 * Chunks of a body in order. `return` is called when no more are needed, even while one is being
 * produced.
 */
export type ChunkSource = {
  next(): Promise<IteratorResult<string | Uint8Array, unknown>>
  return(value: undefined): Promise<unknown>
}

/**
 * A body with chunks that are produced when the reader takes them: a slow or stalled reader costs
 * the memory of one chunk. If a chunk cannot be produced or the reader is gone, the connection is
 * aborted, so that a truncated body never looks complete. For HEAD, it is empty: nobody
 * reads or cancels it.
 */
export function textStream(
  c: Context<Env>,
  { clock, log }: Deps,
  chunks: ChunkSource,
  { produce = withSlot }: { readonly produce?: <T>(chunk: () => Promise<T>) => Promise<T> } = {},
): ReadableStream<Uint8Array> {
  if (c.req.method === 'HEAD') {
    void chunks.return(undefined).catch(() => {})
    return new ReadableStream({ start: controller => controller.close() })
  }
  const encoder = new TextEncoder()
  let cancelTimeout = () => {}
  let isDone = false
  const end = () => {
    isDone = true
    cancelTimeout()
    void chunks.return(undefined).catch(() => {})
  }
  const abort = (controller: ReadableStreamDefaultController, error: unknown) => {
    if (isDone) return
    end()
    writeLog(log, API_LOG.responseAborted, {
      requestId: c.get('requestId'),
      why: errorMessage(error),
    })
    // An error of the body alone would be sent as text, and end the response as if it were
    // complete.
    if (c.env?.outgoing !== undefined) c.env.outgoing.destroy()
    else controller.error(error)
  }
  const startTimeout = (controller: ReadableStreamDefaultController) =>
    clock.after(READER_TIMEOUT_MS, () => abort(controller, new Error(GONE)))
  return new ReadableStream(
    {
      start(controller) {
        cancelTimeout = startTimeout(controller)
      },
      async pull(controller) {
        cancelTimeout()
        try {
          const { value, done } = await produce(() => chunks.next())
          if (isDone) return
          if (done) {
            end()
            return controller.close()
          }
          controller.enqueue(typeof value === 'string' ? encoder.encode(value) : value)
          cancelTimeout = startTimeout(controller)
        } catch (error) {
          abort(controller, error)
        }
      },
      cancel: end,
    },
    // Produces nothing ahead of the reader.
    { highWaterMark: 0 },
  )
}

const GONE = 'the client stopped reading'

/**
 * Chunks that are produced concurrently over all readers, so that a slow one does not block the
 * others.
 */
const CONCURRENCY_MAX = 4
const slots = new Semaphore(CONCURRENCY_MAX)

/**
 * Yields to the event loop before each chunk: otherwise a fast reader would block all others, and
 * with five hundred concurrent readers each turn would last as long as all their chunks.
 */
async function withSlot<T>(produce: () => Promise<T>): Promise<T> {
  const release = await slots.acquire()
  try {
    await yieldToEventLoop()
    return await produce()
  } finally {
    release()
  }
}
