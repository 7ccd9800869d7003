import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import type { Scenario } from '../../src/simulator/scenario.ts'
import { handIn, type Ledger, ledgerOf, untilFinished } from '../support/chaos.ts'
import { cutProxy } from '../support/cut-proxy.ts'
import { tempPostgres } from '../support/database.ts'
import { type List, worldOf } from '../support/list-simulator.ts'
import { type PostgresServer, startPostgres } from '../support/postgres-server.ts'
import { ProcessCluster, type ProcessClusterOptions } from '../support/process-cluster.ts'

// Each of these is one trouble that the chaos test does not have.

const LIST = { rows: 800, domains: 20 }
/** So slow that there is time for trouble: a list takes some eight seconds. */
const SLOWLY = [
  ...['--concurrency', '20', '--sessions-per-operator', '2', '--recipients-per-session', '5'],
  ...['--sessions-per-second', '1', '--greylist-delay', '3'],
]
const AT_ONCE = [...SLOWLY.slice(0, -4), '--sessions-per-second', '100', '--greylist-delay', '3']

const open: ProcessCluster[] = []
let server: PostgresServer | null = null
afterEach(async () => {
  const faults = await Promise.all(open.splice(0).map(egressPool => egressPool.close()))
  await server?.stop()
  server = null
  expect(faults.flat()).toEqual([])
})

async function openFleet(url: string, options: ProcessClusterOptions): Promise<ProcessCluster> {
  const egressPool = await ProcessCluster.open(url, {
    serverArgs: ['--limits', 'off', '--plan', 'enterprise', ...HOOKS],
    ...options,
  })
  open.push(egressPool)
  return egressPool
}

const HOOKS = ['--webhook-allow-ranges', '127.0.0.0/8']

/** What holds whatever happened: each row its result, each list its event. */
const whole = ({ rows }: List): Partial<Ledger> => ({
  jobs: [{ state: 'completed', done: rows, total: rows }],
  ...{ wrongRows: 0, history: rows, events: 1, deliveries: 1, creditsHeld: 0 },
})

test('a worker that stood still for longer than it may writes nothing of what it had, and works on', async () => {
  const egressPool = await openFleet(await tempPostgres(), {
    scenario: worldOf(LIST, 20),
    args: SLOWLY,
  })
  const front = await egressPool.start('serve', 'server')
  const stalled = await egressPool.start('worker', 'worker')
  const [before] = await egressPool.ask<{ id: string }>(
    "select id from member where role = 'worker'",
  )
  const job = await handIn(egressPool, front, LIST)
  await wait(2_000)
  stalled.child.kill('SIGSTOP')
  await expect.poll(() => egressPool.ask("select id from member where role = 'worker'")).toEqual([])
  stalled.child.kill('SIGCONT')
  await untilFinished(egressPool, [job])
  expect(await ledgerOf(egressPool, { list: LIST })).toMatchObject(whole(LIST))
  await expect
    .poll(() => egressPool.ask<{ id: string }>("select id from member where role = 'worker'"))
    .toEqual([{ id: expect.not.stringMatching(`^${before?.id}$`) }])
})

test('PostgreSQL that is cut off and comes back is waited for by all, and told of by the API', async () => {
  server = await startPostgres()
  const egressPool = await openFleet(await server.create('ev'), {
    ...{ scenario: worldOf(LIST, 20), args: SLOWLY },
  })
  const front = await egressPool.start('serve', 'server')
  await egressPool.start('worker', 'worker')
  const job = await handIn(egressPool, front, LIST)
  const answers = new Set<number>()
  const asking = (async () => {
    for (let n = 0; n < 60; n++) {
      const headers = { Authorization: `Bearer ${egressPool.key}` }
      const { status } = await fetch(`${front.url()}/v1/jobs/${job}`, { headers })
      answers.add(status)
      await wait(100)
    }
  })()
  for (let n = 0; n < 3; n++) {
    await wait(1_500)
    await server.restart('immediate')
  }
  await asking
  await untilFinished(egressPool, [job])
  expect(await ledgerOf(egressPool, { list: LIST })).toMatchObject(whole(LIST))
  expect([...answers].filter(status => status !== 200 && status !== 503)).toEqual([])
})

test('a connection that is cut right after its COMMIT has nothing counted twice', async () => {
  const url = await tempPostgres()
  const proxy = await cutProxy(url)
  try {
    const egressPool = await openFleet(url, { scenario: worldOf(LIST, 20), args: SLOWLY })
    const front = await egressPool.start('serve', 'server', ['--work', 'off'])
    await egressPool.start('worker', 'worker', [], proxy.url)
    const job = await handIn(egressPool, front, LIST)
    for (let cuts = 0; cuts < 5; cuts++) {
      await proxy.cutAfterCommit(/update .?item/i)
      await wait(100)
    }
    await untilFinished(egressPool, [job])
    expect(await ledgerOf(egressPool, { list: LIST })).toMatchObject(whole(LIST))
  } finally {
    await Promise.all(open.splice(0).map(egressPool => egressPool.close()))
    await proxy.close()
  }
})

test('a worker that is told to stop gives back what it has, and another goes on at once', async () => {
  const egressPool = await openFleet(await tempPostgres(), {
    scenario: worldOf(LIST, 20),
    args: SLOWLY,
  })
  const front = await egressPool.start('serve', 'server', ['--work', 'off'])
  const first = await egressPool.start('worker', 'first')
  const job = await handIn(egressPool, front, LIST)
  await wait(2_000)
  await egressPool.start('worker', 'second')
  const startedAt = performance.now()
  expect(await first.end('SIGTERM')).toBe(0)
  expect(performance.now() - startedAt).toBeLessThan(15_000)
  const probing = `select count(*) as count from item
    where state = 'probing' and holder not in (select id from member)`
  expect(await egressPool.ask(probing)).toEqual([{ count: '0' }])
  await untilFinished(egressPool, [job])
  const ledger = await ledgerOf(egressPool, { list: LIST })
  expect(ledger).toMatchObject(whole(LIST))
  expect(ledger.sessionsPeak).toBeLessThanOrEqual(2)
})

/** One mail server that refuses one of our addresses, and one that has to be asked again by whoever asked. */
const TWO_WAYS: Scenario = {
  roundTripMs: 5,
  mailboxes: ['user*'],
  domains: {
    'd0.test': { mx: [[10, 'mx.d0.test']] },
    'd1.test': { mx: [[10, 'mx.d1.test']] },
  },
  hosts: {
    'mx.d0.test': {
      behavior: 'polite',
      rules: [{ on: 'CONNECT', client: '127.0.0.2', reply: '554 5.7.1 Your address is blocked' }],
    },
    'mx.d1.test': { behavior: 'greylist', seconds: 2 },
  },
}

test('what an operator refuses to one egress the other asks; what is greylisted stays with its own', async () => {
  const list = { rows: 120, domains: 2 }
  const egressPool = await openFleet(await tempPostgres(), { scenario: TWO_WAYS, args: AT_ONCE })
  const front = await egressPool.start('serve', 'server', ['--work', 'off'])
  await egressPool.start('worker', 'north', ['--egress', 'north', '--source-address', '127.0.0.2'])
  await egressPool.start('worker', 'south', ['--egress', 'south', '--source-address', '127.0.0.3'])
  // By now each has heard of the other: they look every three seconds.
  await wait(4_000)
  const job = await handIn(egressPool, front, list)
  await untilFinished(egressPool, [job])
  expect(await ledgerOf(egressPool, { list })).toMatchObject(whole(list))
  const { hosts } = await egressPool.world.counters()
  // Each is asked twice: had another egress come back it would have been told to wait once more.
  const asked = [...(hosts['mx.d1.test']?.recipients.values() ?? [])]
  expect(asked.filter(times => times > 2)).toEqual([])
})
