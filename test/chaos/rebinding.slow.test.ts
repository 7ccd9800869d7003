import { expect, onTestFinished, test } from 'vitest'
import { EvClient } from '../../src/client/client.ts'
import { emptyFolder } from '../support/ev-process.ts'
import { withFreePort } from '../support/free-port.ts'
import { type Receiver, type ReceiverOptions, startReceiver } from '../support/http-receiver.ts'
import { nameServer } from '../support/name-server.ts'
import { startService } from '../support/service-process.ts'

const PUBLIC = '8.8.8.8'
/** Where webhooks may go. */
const ALLOWED = '127.0.0.1'
/** Where they may not. */
const FORBIDDEN = '127.0.0.2'
const NAMES = Array.from({ length: 5 }, (_, n) => `hook${n}.example`)

async function receive(options: ReceiverOptions): Promise<Receiver> {
  const receiver = await startReceiver(options)
  onTestFinished(() => receiver.close())
  return receiver
}

test('a webhook whose name means another address after it was checked is not sent there', async () => {
  const [allowed, forbidden] = await withFreePort(async port => [
    await receive({ ip: ALLOWED, port }),
    await receive({ ip: FORBIDDEN, port }),
  ])
  /** What a name means when it is asked for the nth time, from 0. */
  let addressOf = (_nth: number) => PUBLIC
  const asked = new Map<string, number>()
  const dns = await nameServer(({ name, type }) => {
    if (!NAMES.includes(name) || type !== 'A') return {}
    const nth = asked.get(name) ?? 0
    asked.set(name, nth + 1)
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
  expect([...asked.keys()].toSorted()).toEqual(NAMES)
  /** Sends an event to each, by a process that knows no answer of the DNS yet. */
  async function testAll(): Promise<(string | null)[]> {
    expect((await service.end('SIGTERM')).code).toBe(0)
    service = await startService(home, args)
    asked.clear()
    return Promise.all(ids.map(async id => (await webhooks().test(id)).error))
  }

  addressOf = () => FORBIDDEN
  const faults = await testAll()
  expect(faults.filter(fault => !fault?.includes('not public'))).toEqual([])

  // A second question between the check and the dial would get the other address.
  addressOf = nth => (nth === 0 ? ALLOWED : FORBIDDEN)
  await testAll()
  expect(allowed.connections.came).toBe(NAMES.length)
  expect(forbidden.connections.came).toBe(0)
  expect((await service.end('SIGTERM')).code).toBe(0)
})
