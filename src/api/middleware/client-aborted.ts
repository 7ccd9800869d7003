import type { Context } from 'hono'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'

/** Thrown to nobody: the client is gone. */
export const clientAborted = () =>
  new ApiError('request_timeout', 'The client went away before its answer was there')

/** Waits for `work` as long as the client does; what it began may serve others and goes on. Throws `clientGone`. */
export function unlessAborted<T>(c: Context<Env>, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = onAborted(c, () => reject(clientAborted()))
    work.then(resolve, reject).finally(end)
  })
}

/** Calls back when the client goes away before it is answered; the returned function ends that. */
function onAborted(c: Context<Env>, callback: () => void): () => void {
  const outgoing = c.env?.outgoing
  if (outgoing === undefined) {
    const { signal } = c.req.raw
    signal.addEventListener('abort', callback, { once: true })
    return () => signal.removeEventListener('abort', callback)
  }
  // The signal of a request is made when it is asked for, together with a whole Request: half of what a remembered answer costs.
  outgoing.once('close', callback)
  return () => outgoing.off('close', callback)
}
