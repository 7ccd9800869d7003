import type { Attempt } from './attempt.ts'

/**
 * Passes a stream through and fails it if a chunk does not arrive in time. The time that the reader
 * takes does not count.
 */
export function withChunkTimeout(
  body: ReadableStream<Uint8Array>,
  attempt: Attempt,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream(
    {
      start(controller) {
        const onAbort = () => {
          controller.error(attempt.toError(attempt.signal.reason))
          attempt.end()
          reader.cancel().catch(() => {})
        }
        attempt.signal.addEventListener('abort', onAbort, { once: true })
      },
      async pull(controller) {
        attempt.resume()
        try {
          const { done, value } = await reader.read()
          attempt.pause()
          if (!done) return controller.enqueue(value)
          attempt.end()
          controller.close()
        } catch (error) {
          attempt.end()
          throw attempt.toError(error)
        }
      },
      async cancel(reason) {
        attempt.end()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

/** Iterates the lines of a text without their LF; a CR before it is kept. */
export async function* readLines(bytes: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of readChunks(bytes)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  rest += decoder.decode()
  if (rest !== '') yield rest
}

/** Iterates the raw records of a CSV without their line breaks. Quoted cells may span lines. */
export async function* readRecords(bytes: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let record: string[] = []
  let isQuoted = false
  for await (const line of readLines(bytes)) {
    record.push(line)
    // RFC 4180: an odd number of quotes in a line opens or closes a cell that spans lines.
    isQuoted = isQuoted !== (line.split('"').length % 2 === 0)
    if (isQuoted) continue
    yield record.join('\n').replace(/\r$/, '')
    record = []
  }
  if (record.length > 0) yield record.join('\n')
}

/** Iterates the objects of an NDJSON text. */
export async function* readObjects<T>(bytes: ReadableStream<Uint8Array>): AsyncGenerator<T> {
  for await (const line of readLines(bytes)) {
    if (line.trim() !== '') yield JSON.parse(line) as T
  }
}

/** Iterates the events of a `text/event-stream`. Drops an incomplete last event. */
export async function* readEvents<T extends { event: string; data: unknown }>(
  bytes: ReadableStream<Uint8Array>,
): AsyncGenerator<T> {
  let fields = new Map<string, string>()
  for await (const line of readLines(bytes)) {
    const [name = '', value = ''] = line.replace(/\r$/, '').split(/: ?(.*)/s)
    if (name !== '') fields.set(name, value)
    else if (!line.startsWith(':')) {
      const data = fields.get('data')
      if (data !== undefined) {
        yield { event: fields.get('event') ?? 'message', data: JSON.parse(data) } as T
      }
      fields = new Map()
    }
  }
}

/** Iterates a stream, which not all browsers support. Cancels it if the consumer stops early. */
async function* readChunks(bytes: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = bytes.getReader()
  let isDone = false
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      yield value
    }
    isDone = true
  } catch (error) {
    isDone = true
    throw error
  } finally {
    if (!isDone) await reader.cancel()
  }
}
