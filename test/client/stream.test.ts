import { describe, expect, test } from 'vitest'
import { readEvents, readLines, readObjects, readRecords } from '../../src/client/stream.ts'
import { ATTEMPT_MS, createScriptedClient, failureOf } from '../support/scripted-client.ts'
import { drainEventLoop } from '../support/wait.ts'

const TEXT = 'email,note\r\nä@example.com,"says ""hi""\r\nand goes"\r\nb@example.com,\r\n'

describe('a text that arrives in chunks', () => {
  test.each([1, 2, 3, 7, 1_000])('yields the same lines in chunks of %i bytes', async size => {
    expect(await all(readLines(pieces(TEXT, size)))).toEqual([
      'email,note\r',
      'ä@example.com,"says ""hi""\r',
      'and goes"\r',
      'b@example.com,\r',
    ])
  })

  test.each([1, 5, 1_000])('yields complete CSV records in chunks of %i bytes', async size => {
    expect(await all(readRecords(pieces(TEXT, size)))).toEqual([
      'email,note',
      'ä@example.com,"says ""hi""\r\nand goes"',
      'b@example.com,',
    ])
  })

  test('yields a last line without a line break, and an unclosed last record', async () => {
    expect(await all(readLines(pieces('a\nb', 2)))).toEqual(['a', 'b'])
    expect(await all(readRecords(pieces('a\r\n"b', 2)))).toEqual(['a', '"b'])
  })

  test('yields nothing for an empty text', async () => {
    expect(await all(readLines(pieces('', 1)))).toEqual([])
    expect(await all(readObjects(pieces('\n\r\n', 1)))).toEqual([])
  })

  test('yields objects, one per line', async () => {
    const objects = await all(readObjects<{ row: number }>(pieces('{"row":1}\r\n{"row":2}\n', 4)))
    expect(objects).toEqual([{ row: 1 }, { row: 2 }])
  })
})

describe('a stream of events', () => {
  test.each([1, 4, 1_000])(
    'yields them one by one in chunks of %i bytes, without comments',
    async size => {
      const text =
        'retry: 3000\n\nevent: step\ndata: {"n":1,"to":"a: b"}\n\n:\n\ndata: {"n":2}\r\n\r\nevent: cut\ndata: {"n":3}'
      expect(await all(readEvents(pieces(text, size)))).toEqual([
        { event: 'step', data: { n: 1, to: 'a: b' } },
        { event: 'message', data: { n: 2 } },
      ])
    },
  )

  test('of a job ends with the job, and fails if it breaks off before', async () => {
    const progress = 'event: progress\ndata: {"progress":50}\n\n'
    const { client } = createScriptedClient([
      { body: `${progress}event: end\ndata: {"progress":100}\n\n` },
      { body: progress },
    ])
    expect(await all(client.jobs.events('job_1'))).toEqual([{ progress: 50 }, { progress: 100 }])
    expect(await failureOf(all(client.jobs.events('job_1')))).toMatchObject({
      name: 'EvConnectionError',
      message: 'The event stream ended before the job did. Call events() again.',
    })
  })
})

describe('a download', () => {
  test('is retried until it starts', async () => {
    const { client, asked } = createScriptedClient([
      { status: 503 },
      { body: 'email\r\na@example.com\r\n' },
    ])
    expect(await all(client.jobs.csv('job_1'))).toEqual(['email', 'a@example.com'])
    expect(asked.map(({ path }) => path)).toEqual(
      Array(2).fill('/v1/jobs/job_1/download?format=csv'),
    )
  })

  test('that breaks off fails after the received chunks, and is not restarted', async () => {
    const steps = [() => encode('{"row":1}\n'), () => fail(new TypeError('terminated'))]
    const { client, asked } = createScriptedClient([{ body: scripted(steps) }])
    const rows: unknown[] = []
    const failure = await failureOf(
      (async () => {
        for await (const row of client.jobs.results('job_1')) rows.push(row)
      })(),
    )
    expect(failure).toMatchObject({ name: 'EvConnectionError', timedOut: false })
    expect([rows, asked.length]).toEqual([[{ row: 1 }], 1])
  })

  test('that stalls for too long is aborted', async () => {
    const steps = [() => encode('{"row":1}\n'), () => new Promise<never>(() => {})]
    const { client, expire } = createScriptedClient([{ body: scripted(steps) }])
    const rows = client.jobs.results('job_1')[Symbol.asyncIterator]()
    expect(await rows.next()).toEqual({ done: false, value: { row: 1 } })
    const failure = failureOf(rows.next())
    await drainEventLoop()
    expire()
    expect(await failure).toMatchObject({ name: 'EvConnectionError', timedOut: true })
  })

  test('waits for a slow reader without a timeout', async () => {
    const timers: AbortSignal[] = []
    const { client } = createScriptedClient([{ body: pieces('a\nb\n', 2) }], {
      sleep: (ms, signal) => {
        if (ms === ATTEMPT_MS && signal) timers.push(signal)
        return new Promise(() => {})
      },
    })
    const reader = (await client.jobs.download('job_1')).getReader()
    await reader.read()
    await drainEventLoop()
    expect(timers.filter(signal => !signal.aborted)).toEqual([])
  })

  test('closes the connection if its reader stops', async () => {
    let reason: unknown
    const body = new ReadableStream({
      pull: controller => controller.enqueue(encode('{"row":1}\n')),
      cancel: why => {
        reason = why ?? 'no reason'
      },
    })
    for await (const row of createScriptedClient([{ body }]).client.jobs.results('job_1')) {
      expect(row).toEqual({ row: 1 })
      break
    }
    expect(reason).toBe('no reason')
  })

  test('ends when the signal of its caller aborts', async () => {
    const aborting = new AbortController()
    const body = scripted([() => encode('a\n'), () => new Promise<never>(() => {})])
    const { client, asked } = createScriptedClient([{ body }])
    const rows = client.jobs.csv('job_1', { signal: aborting.signal })[Symbol.asyncIterator]()
    await rows.next()
    const next = rows.next()
    await drainEventLoop()
    aborting.abort('I left')
    expect(asked[0]?.signal.aborted).toBe(true)
    expect(await failureOf(next)).toBe('I left')
  })

  test('ends if the signal of its caller aborted before a fetch that ignores it had a response', async () => {
    const aborting = new AbortController()
    let isCancelled = false
    const { client } = createScriptedClient([], {
      fetch: async () => {
        aborting.abort('I left')
        const cancel = () => {
          isCancelled = true
        }
        return new Response(new ReadableStream({ pull: () => new Promise(() => {}), cancel }))
      },
    })
    const rows = client.jobs.csv('job_1', { signal: aborting.signal })
    expect(await failureOf(all(rows))).toBe('I left')
    expect(isCancelled).toBe(true)
  })

  test('may be empty', async () => {
    expect(
      await all(createScriptedClient([{ status: 204, body: null }]).client.jobs.csv('job_1')),
    ).toEqual([])
  })
})

const encode = (text: string) => new TextEncoder().encode(text)

const fail = (error: Error): Promise<never> => Promise.reject(error)

function pieces(text: string, size: number): ReadableStream<Uint8Array> {
  const bytes = encode(text)
  let at = 0
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close()
      controller.enqueue(bytes.slice(at, at + size))
      at += size
    },
  })
}

function scripted(steps: (() => Uint8Array | Promise<never>)[]): ReadableStream<Uint8Array> {
  return new ReadableStream(
    {
      async pull(controller) {
        const step = steps.shift()
        if (step === undefined) return controller.close()
        controller.enqueue(await step())
      },
    },
    { highWaterMark: 0 },
  )
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const got: T[] = []
  for await (const item of items) got.push(item)
  return got
}
