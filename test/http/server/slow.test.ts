import { once } from 'node:events'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { answerOf, openDoor } from './door.ts'

const POST = (path: string, ...headers: readonly string[]) =>
  `POST ${path} HTTP/1.1\r\n${['Host: ev.example', ...headers].map(one => `${one}\r\n`).join('')}\r\n`

/** One byte after the other until the server has had enough. */
async function trickle(socket: Socket, bytes: string, everyMs = 20): Promise<string> {
  const received = text(socket)
  let isOver = false
  received.finally(() => {
    isOver = true
  })
  for (const byte of bytes) {
    if (isOver) break
    socket.write(byte)
    await wait(everyMs)
  }
  return received
}

describe('a slow client', () => {
  test('that sends a header byte by byte is told so and left', async () => {
    const door = await openDoor()
    const answer = answerOf(
      await trickle(await door.open(), `GET /ok HTTP/1.1\r\nA: ${'x'.repeat(500)}`),
    )
    expect(answer).toMatchObject({ status: 408, json: { code: 'request_timeout' } })
    expect(answer.headers).toMatchObject({ connection: 'close', 'x-ratelimit-limit': '100' })
  })

  test('that sends nothing at all is left', async () => {
    const door = await openDoor()
    expect(answerOf(await door.send())).toMatchObject({ status: 408 })
  })

  test('that sends a body byte by byte is told so and left', async () => {
    const door = await openDoor()
    const sent = `${POST('/echo', 'Content-Length: 1000')}${'x'.repeat(999)}`
    const socket = await door.open()
    socket.write(sent.slice(0, -500))
    const answer = answerOf(await trickle(socket, sent.slice(-500)))
    expect(answer).toMatchObject({ status: 408, json: { code: 'request_timeout' }, rest: '' })
    expect(door.asked).toEqual(['/echo'])
  })

  test.each(['/v1/verify/batch', '/lists/drafts'])('has longer for a list: %s', async path => {
    const door = await openDoor({ limits: { bodyMs: 20, listBodyMs: 10_000 } })
    const socket = await door.open()
    socket.write(POST(path, 'Content-Length: 10', 'Connection: close'))
    expect(answerOf(await trickle(socket, 'x'.repeat(10)))).toMatchObject({
      status: 200,
      json: { bytes: 10 },
    })
  })

  test('that asks nothing more is left when its connection was kept long enough', async () => {
    const door = await openDoor()
    const received = await door.send('GET /ok HTTP/1.1\r\nHost: ev.example\r\n\r\n')
    expect(answerOf(received)).toMatchObject({ status: 200, rest: '' })
  })

  test('that does not read its answer is left', async () => {
    let isCancelled = false
    const door = await openDoor({
      paths: app =>
        app.get('/long', () => {
          const pull = (to: ReadableStreamDefaultController) =>
            to.enqueue(new Uint8Array(1_000_000))
          const cancel = () => {
            isCancelled = true
          }
          return new Response(new ReadableStream({ pull, cancel }))
        }),
    })
    const socket = await door.open()
    socket.pause()
    socket.write('GET /long HTTP/1.1\r\nHost: ev.example\r\n\r\n')
    await wait(1_500)
    expect(isCancelled).toBe(true)
  })

  test('that waits for an answer is not left, however long that takes', async () => {
    const door = await openDoor({
      limits: { stallMs: 30 },
      paths: app => app.get('/wait', async c => wait(300, c.json({ ok: true }))),
    })
    const received = await door.send(
      'GET /wait HTTP/1.1\r\nHost: ev.example\r\nConnection: close\r\n\r\n',
    )
    expect(answerOf(received)).toMatchObject({ status: 200, json: { ok: true } })
  })
})

describe('without an end', () => {
  test('a body of chunks is cut off after the time for it, and memory stays as it is', async () => {
    const door = await openDoor({
      paths: app =>
        app.post('/sink', async c => {
          for await (const _ of c.req.raw.body as ReadableStream<Uint8Array>);
          return c.json({})
        }),
    })
    const socket = await door.open()
    const received = text(socket)
    socket.write(POST('/sink', 'Transfer-Encoding: chunked'))
    const closed = once(socket, 'close')
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    const before = process.memoryUsage.rss()
    let sent = 0
    while (!socket.destroyed && socket.writable) {
      sent += chunk.length
      if (!socket.write(chunk)) await Promise.race([once(socket, 'drain'), closed])
    }
    expect(answerOf(await received)).toMatchObject({ status: 408, rest: '' })
    expect(sent).toBeGreaterThan(1_000_000)
    expect(process.memoryUsage.rss() - before).toBeLessThan(150_000_000)
  })

  test('a stream of an answer that breaks off is seen as broken, not as short', async () => {
    const door = await openDoor({
      paths: app =>
        app.get('/broken', () => {
          let rows = 0
          const pull = async (to: ReadableStreamDefaultController) => {
            await wait(5)
            if (rows++ < 3) to.enqueue(new TextEncoder().encode('row\r\n'))
            else to.error(new Error('the disk is gone'))
          }
          return new Response(new ReadableStream({ pull }))
        }),
    })
    const received = await door.send('GET /broken HTTP/1.1\r\nHost: ev.example\r\n\r\n')
    expect(received).toContain('row')
    expect(received).not.toContain('disk')
    expect(received.endsWith('0\r\n\r\n')).toBe(false)
  })
})

test('a body that is packed is not unpacked', async () => {
  const door = await openDoor()
  const bomb = gzipSync(Buffer.alloc(10_000_000))
  const head = POST(
    '/echo',
    'Content-Encoding: gzip',
    `Content-Length: ${bomb.length}`,
    'Connection: close',
  )
  expect(answerOf(await door.send(head, bomb)).json).toEqual({ bytes: bomb.length })
})

describe('plain HTTP', () => {
  test('is refused to whom it is not meant for', async () => {
    const door = await openDoor({ mayBePlain: ip => ip !== '127.0.0.1' })
    const answer = answerOf(await door.send('GET /ok HTTP/1.1\r\nHost: ev.example\r\n\r\n'))
    expect(answer).toMatchObject({ status: 403, json: { code: 'ip_restricted' } })
    expect(answer.headers).toMatchObject({ connection: 'close' })
    expect(door.asked).toEqual([])
  })
})
