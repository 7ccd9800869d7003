import { expect, onTestFinished, test } from 'vitest'
import { EvClient } from '../../src/client/client.ts'
import { emptyFolder } from '../support/ev-process.ts'
import { withFreePort } from '../support/free-port.ts'
import { type Receiver, type ReceiverOptions, startReceiver } from '../support/http-receiver.ts'
import { nameServer } from '../support/name-server.ts'
import { startService } from '../support/service-process.ts'

const PUBLIC = '8.8.8.8'
/** An address that may be dialed. */
const ALLOWED = '127.0.0.1'
/** An address that may not be dialed. */
const FORBIDDEN = '127.0.0.2'
const NAMES = Array.from({ length: 5 }, (_, n) => `hook${n}.example`)

async function receive(options: ReceiverOptions): Promise<Receiver> {
  const receiver = await startReceiver(options)
  onTestFinished(() => receiver.close())
  return receiver
}

test('a webhook is not sent to an address that its host name resolves to only after the check', async () => {
  const [allowed, forbidden] = await withFreePort(async port => [
    await receive({ ip: ALLOWED, port }),
    await receive({ ip: FORBIDDEN, port }),
  ])
  /** Returns the address that a name resolves to at the nth query, from 0. */
  let addressOf = (_nth: number) => PUBLIC
  const queries = new Map<string, number>()
  const dns = await nameServer(({ name, type }) => {
    if (!NAMES.includes(name) || type !== 'A') return {}
    const nth = queries.get(name) ?? 0
    queries.set(name, nth + 1)
    return { answers: [{ type, name, ttl: 0, data: addressOf(nth) }] }
  })
  onTestFinished(() => dns.close())
  const home = emptyFolder()
  const args = [
    ...['--dns', dns.address, '--helo', 'probe.example.com'],
    ...['--webhook-allow-ranges', `${ALLOWED}/32`],
  ]
  let service = await startService(home, args)
  const { key } = service
  const webhooks = () => new EvClient({ apiKey: key, baseUrl: service.url }).webhooks
  const ids = await Promise.all(
    NAMES.map(async name => {
      const url = `https://${name}:${allowed.port}/`
      return (await webhooks().create({ url, events: ['batch.completed'] })).id
    }),
  )
  expect([...queries.keys()].toSorted()).toEqual(NAMES)
  /** Sends an event to each webhook from a new process, which has no cached DNS answers. */
  async function testAll(): Promise<(string | null)[]> {
    expect((await service.end('SIGTERM')).code).toBe(0)
    service = await startService(home, args)
    queries.clear()
    return Promise.all(ids.map(async id => (await webhooks().test(id)).error))
  }

  addressOf = () => FORBIDDEN
  const errors = await testAll()
  expect(errors.filter(error => !error?.includes('not public'))).toEqual([])

  // A second query between the check and the connection would get the other address.
  addressOf = nth => (nth === 0 ? ALLOWED : FORBIDDEN)
  await testAll()
  expect(allowed.connections.opened).toBe(NAMES.length)
  expect(forbidden.connections.opened).toBe(0)
  expect((await service.end('SIGTERM')).code).toBe(0)
})

test('a list is not downloaded from an address that its host name resolves to only after the check', async () => {
  const [allowed, forbidden] = await withFreePort(async port => [
    await receive({ ip: ALLOWED, port }),
    await receive({ ip: FORBIDDEN, port }),
  ])
  // A second query between the check and the connection would get the other address.
  const queries = new Map<string, number>()
  const dns = await nameServer(({ name, type }) => {
    if (type !== 'A') return {}
    const nth = queries.get(name) ?? 0
    queries.set(name, nth + 1)
    const isAllowed = NAMES.includes(name) && nth === 0
    return { answers: [{ type, name, ttl: 0, data: isAllowed ? ALLOWED : FORBIDDEN }] }
  })
  onTestFinished(() => dns.close())
  const service = await startService(emptyFolder(), [
    ...['--dns', dns.address, '--helo', 'probe.example.com'],
    ...['--list-allow-ranges', `${ALLOWED}/32`],
  ])
  const client = new EvClient({ apiKey: service.key, baseUrl: service.url })
  const codes: unknown[] = []
  for (const name of [...NAMES, 'inside.example']) {
    const download = client.previewUrl(`https://${name}:${allowed.port}/list.csv`)
    codes.push(await download.catch((error: { code?: string }) => error.code))
  }
  // The service does not trust the certificate of the receiver.
  expect(codes).toEqual([...NAMES.map(() => 'list_unreachable'), 'invalid_list_url'])
  expect(allowed.connections.opened).toBe(NAMES.length)
  expect(forbidden.connections.opened).toBe(0)
  expect((await service.end('SIGTERM')).code).toBe(0)
})
