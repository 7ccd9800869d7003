import type { Context } from 'hono'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'

/** Error of a client that has disconnected; it is never delivered. */
export const clientAborted = () =>
  new ApiError('request_timeout', 'The client disconnected before the response was ready.')

/**
 * Waits for `work` while the client is connected, then throws `clientAborted`. `work` continues,
 * since other requests may share it.
 */
export function unlessAborted<T>(c: Context<Env>, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = onAborted(c, () => reject(clientAborted()))
    work.then(resolve, reject).finally(cancel)
  })
}

/**
 * Calls back if the client disconnects before it is answered; the returned function cancels this.
 */
function onAborted(c: Context<Env>, callback: () => void): () => void {
  const outgoing = c.env?.outgoing
  if (outgoing === undefined) {
    const { signal } = c.req.raw
    signal.addEventListener('abort', callback, { once: true })
    return () => signal.removeEventListener('abort', callback)
  }
  // Accessing the signal of a request creates it together with a whole Request, which costs half of
  // a cached answer.
  outgoing.once('close', callback)
  return () => outgoing.off('close', callback)
}
