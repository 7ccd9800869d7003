import type { Context } from 'hono'
import { type Clock, MINUTE, yieldToEventLoop } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import type { Log } from '../platform/log.ts'
import type { Env } from './context.ts'

/** A reader that takes nothing for so long is gone, or holds the connection for nothing. */
export const READER_TIMEOUT_MS = MINUTE

type Deps = { readonly clock: Clock; readonly log: Log }

/** Pieces of a body, in their order; `return` is called when no more are wanted, even while one is being made. */
export type Pieces = {
  next(): Promise<IteratorResult<string, unknown>>
  return(value: undefined): Promise<unknown>
}

/**
 * A body whose pieces are made when the reader takes them: one that is slow, or stops, costs one piece of memory.
 * When a piece cannot be made, or the reader is gone, the connection is broken off: what is cut short never looks whole.
 */
export function textStream(
  c: Context<Env>,
  { clock, log }: Deps,
  pieces: Pieces,
  { make = sequentially }: { readonly make?: <T>(piece: () => Promise<T>) => Promise<T> } = {},
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let endWatch = () => {}
  let isDone = false
  const end = () => {
    isDone = true
    endWatch()
    void pieces.return(undefined).catch(() => {})
  }
  const giveUp = (controller: ReadableStreamDefaultController, error: unknown) => {
    if (isDone) return
    end()
    log.warn('an answer was broken off', {
      requestId: c.get('requestId'),
      why: errorMessage(error),
    })
    // An error of the body alone would have its text sent, and the answer ended as if it were whole.
    if (c.env?.outgoing !== undefined) c.env.outgoing.destroy()
    else controller.error(error)
  }
  const watch = (controller: ReadableStreamDefaultController) =>
    clock.after(READER_TIMEOUT_MS, () => giveUp(controller, new Error(GONE)))
  return new ReadableStream(
    {
      start(controller) {
        endWatch = watch(controller)
      },
      async pull(controller) {
        endWatch()
        try {
          const { value, done } = await make(() => pieces.next())
          if (isDone) return
          if (done) {
            end()
            return controller.close()
          }
          controller.enqueue(encoder.encode(value))
          endWatch = watch(controller)
        } catch (error) {
          giveUp(controller, error)
        }
      },
      cancel: end,
    },
    // Nothing is made ahead of the reader.
    { highWaterMark: 0 },
  )
}

const GONE = 'nobody took what was sent'

/** Pieces that are made at the same time, over all readers: one that is long in coming does not hold up the others. */
const MAKING_MAX = 4
let making = 0
const waiting: (() => void)[] = []

/**
 * A turn of the event loop for each piece: a reader as fast as we are would else keep all others waiting, and five
 * hundred that ask at once would have each turn last as long as all their pieces.
 */
async function sequentially<T>(make: () => Promise<T>): Promise<T> {
  // Whoever is called on takes the place of who is done.
  if (making === MAKING_MAX) await new Promise<void>(resolve => void waiting.push(resolve))
  else making++
  try {
    await yieldToEventLoop()
    return await make()
  } finally {
    const next = waiting.shift()
    if (next === undefined) making--
    else next()
  }
}
