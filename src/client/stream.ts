import type { Attempt } from './attempt.ts'

/** The same bytes; a piece that does not come in time ends the stream, however slowly its reader takes them. */
export function watched(
  body: ReadableStream<Uint8Array>,
  attempt: Attempt,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream(
    {
      start(controller) {
        const leave = () => {
          controller.error(attempt.faultOf(attempt.signal.reason))
          attempt.end()
          reader.cancel().catch(() => {})
        }
        attempt.signal.addEventListener('abort', leave, { once: true })
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
          throw attempt.faultOf(error)
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

/** The lines of a text, without their LF; a CR before it stays. */
export async function* linesOf(bytes: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const piece of piecesOf(bytes)) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  rest += decoder.decode()
  if (rest !== '') yield rest
}

/** The records of a CSV, each as it stands, without its line break: a quoted cell may go on over lines. */
export async function* recordsOf(bytes: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let started: string[] = []
  let isQuoted = false
  for await (const line of linesOf(bytes)) {
    started.push(line)
    // RFC 4180: an odd number of quotes means that a cell is open at the end of the line, or was and is closed now.
    isQuoted = isQuoted !== (line.split('"').length % 2 === 0)
    if (isQuoted) continue
    yield started.join('\n').replace(/\r$/, '')
    started = []
  }
  if (started.length > 0) yield started.join('\n')
}

/** The objects of a text that holds one as JSON on each line. */
export async function* objectsOf<T>(bytes: ReadableStream<Uint8Array>): AsyncGenerator<T> {
  for await (const line of linesOf(bytes)) {
    if (line.trim() !== '') yield JSON.parse(line) as T
  }
}

/** The events of a `text/event-stream`; one that is cut short is none. */
export async function* eventsOf<T extends { event: string; data: unknown }>(
  bytes: ReadableStream<Uint8Array>,
): AsyncGenerator<T> {
  let fields = new Map<string, string>()
  for await (const line of linesOf(bytes)) {
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

/** Not every browser lets a stream be iterated. Whoever stops early lets the connection go. */
async function* piecesOf(bytes: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
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
