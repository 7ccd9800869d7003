import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { EvError } from '../../../src/base/error.ts'
import { selfSigned } from '../../../src/world/host/certificate.ts'
import { answerOf, type DoorOptions, openDoor } from './door.ts'

const GET = (path: string) => `GET ${path} HTTP/1.1\r\nHost: ev.example\r\n\r\n`

/** A door whose /wait answers when it is told to. */
async function openWaiting(options: DoorOptions = {}) {
  let release = () => {}
  const released = new Promise<void>(resolve => {
    release = resolve
  })
  let arrive = () => {}
  const arrived = new Promise<void>(resolve => {
    arrive = resolve
  })
  const door = await openDoor({
    limits: { keepAliveMs: 5_000, stallMs: 5_000, headersMs: 5_000 },
    paths: app =>
      app.get('/wait', async c => {
        arrive()
        await released
        return c.json({ ok: true })
      }),
    ...options,
  })
  return { door, release, arrived }
}

describe('a server that stops', () => {
  test('answers what was asked, says that it closes, and listens no longer', async () => {
    const { door, release, arrived } = await openWaiting()
    const asked = door.send(GET('/wait'))
    await arrived
    const stopped = door.stop(10_000)
    const late = connect(door.port, '127.0.0.1')
    expect((await once(late, 'error'))[0]).toMatchObject({ code: 'ECONNREFUSED' })
    release()
    const answer = answerOf(await asked)
    expect(answer).toMatchObject({ status: 200, json: { ok: true }, rest: '' })
    expect(answer.headers.connection).toBe('close')
    await stopped
  })

  test('closes at once what is kept open without a request, and soon what is half sent', async () => {
    const { door } = await openWaiting()
    const kept = await door.open()
    kept.write(GET('/ok'))
    await once(kept, 'data')
    const half = await door.open()
    half.write('GET /ok HTTP/1.1\r\n')
    const closed = Promise.all([text(kept), text(half)])
    await door.stop(10_000)
    await closed
  })

  test('answers the next request of a kept connection too, as the last one', async () => {
    const { door, release, arrived } = await openWaiting()
    const socket = await door.open()
    const received = text(socket)
    socket.write(GET('/wait'))
    await arrived
    const stopped = door.stop(10_000)
    socket.write(GET('/ok'))
    release()
    await stopped
    expect((await received).match(/HTTP\/1\.1 200/g)).toHaveLength(1)
  })

  test('waits no longer than its grace', async () => {
    const { door, arrived } = await openWaiting()
    const asked = door.send(GET('/wait'))
    await arrived
    await door.stop(50)
    expect(await asked).toBe('')
  })

  test('may be told twice, and the shorter grace counts', async () => {
    const { door, arrived } = await openWaiting()
    const asked = door.send(GET('/wait'))
    await arrived
    const first = door.stop(60_000)
    await door.stop(20)
    await first
    expect(await asked).toBe('')
  })

  test('lets streams of HTTP/2 come to their end, and takes no new ones', async () => {
    const certificate = { ...selfSigned('ev.example'), expiresAt: systemClock.now() + 1 }
    const { door, release, arrived } = await openWaiting({ certificate })
    const client = connectHttp2(`https://127.0.0.1:${door.port}`, { rejectUnauthorized: false })
    onTestFinished(() => client.destroy())
    client.on('error', () => {})
    const stream = client.request({ ':path': '/wait' })
    await arrived
    const told = once(client, 'goaway')
    const stopped = door.stop(10_000)
    await told
    const response = once(stream, 'response')
    release()
    expect((await response)[0][':status']).toBe(200)
    expect(JSON.parse(await text(stream))).toEqual({ ok: true })
    await stopped
  })
})

describe('a server that cannot listen', () => {
  test('says that another program does already, and what to do', async () => {
    const { port } = await openDoor()
    const second = openDoor({ port })
    await expect(second).rejects.toBeInstanceOf(EvError)
    await expect(second).rejects.toMatchObject({
      code: 'io',
      message: `ev cannot listen on 127.0.0.1:${port}: another program does already. Stop that one, or name another port with --listen.`,
    })
  })

  test('says that this machine has no such address', async () => {
    await expect(openDoor({ host: '192.0.2.1' })).rejects.toMatchObject({
      code: 'io',
      message: expect.stringMatching(/192\.0\.2\.1:0: this machine has no such address\. Name/),
    })
  })
})
