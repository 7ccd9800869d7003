import type { Context } from 'hono'
import { problemOf } from './api.ts'
import type { Env } from './deps.ts'

/** Headers of an answer that say what its body is. */
const OF_BODY = ['Content-Type', 'Content-Disposition', 'X-Accel-Buffering']

/** Passes an answer of the API on as it comes: a file, or events. Throws ApiProblem where the API says no. */
export async function proxy(c: Context<Env>, answer: Response): Promise<Response> {
  if (!answer.ok) throw await problemOf(answer)
  for (const name of OF_BODY) {
    const value = answer.headers.get(name)
    if (value !== null) c.header(name, value)
  }
  return c.body(answer.body === null ? '' : unchangedHeaders(c, answer.body))
}

/** An answer that breaks off ends its connection, or what is cut short would look whole. */
function unchangedHeaders(
  c: Context<Env>,
  body: ReadableStream<Uint8Array>,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          c.env?.outgoing?.destroy()
          controller.error(error)
        }
      },
      cancel: reason => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
