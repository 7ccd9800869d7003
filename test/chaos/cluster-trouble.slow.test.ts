import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import type { Scenario } from '../../src/simulator/scenario.ts'
import { type Ledger, ledgerOf, submitOne, untilFinished } from '../support/chaos.ts'
import { cutProxy } from '../support/cut-proxy.ts'
import { type List, scenarioOf } from '../support/list-simulator.ts'
import { tempPostgres } from '../support/postgres-pool.ts'
import { type PostgresServer, startPostgres } from '../support/postgres-server.ts'
import { ProcessCluster, type ProcessClusterOptions } from '../support/process-cluster.ts'

// Each test injects one failure that `cluster.slow.test.ts` does not have.

const LIST = { rows: 800, domains: 20 }
/** Slow enough to inject failures: a list takes some eight seconds. */
const SLOW_ARGS = [
  ...['--concurrency', '20', '--sessions-per-operator', '2', '--recipients-per-session', '5'],
  ...['--sessions-per-second', '1', '--greylist-delay', '3'],
]
const FAST_ARGS = [
  ...SLOW_ARGS.slice(0, -4),
  '--sessions-per-second',
  '100',
  '--greylist-delay',
  '3',
]

const openClusters: ProcessCluster[] = []
let server: PostgresServer | null = null
afterEach(async () => {
  const errors = await Promise.all(openClusters.splice(0).map(cluster => cluster.close()))
  await server?.stop()
  server = null
  expect(errors.flat()).toEqual([])
})

async function openCluster(url: string, options: ProcessClusterOptions): Promise<ProcessCluster> {
  const cluster = await ProcessCluster.open(url, {
    serverArgs: ['--limits', 'off', '--plan', 'enterprise', ...WEBHOOK_ARGS],
    ...options,
  })
  openClusters.push(cluster)
  return cluster
}

const WEBHOOK_ARGS = ['--webhook-allow-ranges', '127.0.0.0/8']

/** Returns the expected ledger: a result for each row and an event for each list. */
const completeLedger = ({ rows }: List): Partial<Ledger> => ({
  jobs: [{ state: 'completed', done: rows, total: rows }],
  wrongRows: 0,
  history: rows,
  events: 1,
  deliveries: 1,
  creditsHeld: 0,
})

test('a worker that stalls until it expires drops its results and continues as a new member', async () => {
  const cluster = await openCluster(await tempPostgres(), {
    scenario: scenarioOf(LIST, 20),
    args: SLOW_ARGS,
  })
  const api = await cluster.start('serve', 'server')
  const stalled = await cluster.start('worker', 'worker')
  const [before] = await cluster.ask<{ id: string }>("select id from member where role = 'worker'")
  const job = await submitOne(cluster, api, LIST)
  await wait(2_000)
  stalled.child.kill('SIGSTOP')
  await expect.poll(() => cluster.ask("select id from member where role = 'worker'")).toEqual([])
  stalled.child.kill('SIGCONT')
  await untilFinished(cluster, [job])
  expect(await ledgerOf(cluster, { list: LIST })).toMatchObject(completeLedger(LIST))
  await expect
    .poll(() => cluster.ask<{ id: string }>("select id from member where role = 'worker'"))
    .toEqual([{ id: expect.not.stringMatching(`^${before?.id}$`) }])
})

test('all processes wait for PostgreSQL while it restarts, and the API returns 503', async () => {
  server = await startPostgres()
  const cluster = await openCluster(await server.create('ev'), {
    scenario: scenarioOf(LIST, 20),
    args: SLOW_ARGS,
  })
  const api = await cluster.start('serve', 'server')
  await cluster.start('worker', 'worker')
  const job = await submitOne(cluster, api, LIST)
  const statuses = new Set<number>()
  const polling = (async () => {
    for (let n = 0; n < 60; n++) {
      const headers = { Authorization: `Bearer ${cluster.key}` }
      const { status } = await fetch(`${api.url()}/v1/jobs/${job}`, { headers })
      statuses.add(status)
      await wait(100)
    }
  })()
  for (let n = 0; n < 3; n++) {
    await wait(1_500)
    await server.restart('immediate')
  }
  await polling
  await untilFinished(cluster, [job])
  expect(await ledgerOf(cluster, { list: LIST })).toMatchObject(completeLedger(LIST))
  expect([...statuses].filter(status => status !== 200 && status !== 503)).toEqual([])
})

test('a connection that is cut right after COMMIT counts nothing twice', async () => {
  const url = await tempPostgres()
  const proxy = await cutProxy(url)
  try {
    const cluster = await openCluster(url, { scenario: scenarioOf(LIST, 20), args: SLOW_ARGS })
    const api = await cluster.start('serve', 'server', ['--work', 'off'])
    await cluster.start('worker', 'worker', [], proxy.url)
    const job = await submitOne(cluster, api, LIST)
    for (let cuts = 0; cuts < 5; cuts++) {
      await proxy.cutAfterCommit(/update .?item/i)
      await wait(100)
    }
    await untilFinished(cluster, [job])
    expect(await ledgerOf(cluster, { list: LIST })).toMatchObject(completeLedger(LIST))
  } finally {
    await Promise.all(openClusters.splice(0).map(cluster => cluster.close()))
    await proxy.close()
  }
})

test('a worker that receives SIGTERM releases its claims, and another continues at once', async () => {
  const cluster = await openCluster(await tempPostgres(), {
    scenario: scenarioOf(LIST, 20),
    args: SLOW_ARGS,
  })
  const api = await cluster.start('serve', 'server', ['--work', 'off'])
  const first = await cluster.start('worker', 'first')
  const job = await submitOne(cluster, api, LIST)
  await wait(2_000)
  await cluster.start('worker', 'second')
  const startedAt = performance.now()
  expect(await first.end('SIGTERM')).toBe(0)
  expect(performance.now() - startedAt).toBeLessThan(15_000)
  const probing = `select count(*) as count from item
    where state = 'probing' and holder not in (select id from member)`
  expect(await cluster.ask(probing)).toEqual([{ count: '0' }])
  await untilFinished(cluster, [job])
  const ledger = await ledgerOf(cluster, { list: LIST })
  expect(ledger).toMatchObject(completeLedger(LIST))
  expect(ledger.sessionsPeak).toBeLessThanOrEqual(2)
})

/** One mail server blocks a source address; the other greylists, so the same egress must retry. */
const TWO_EGRESSES: Scenario = {
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

test('an operator that blocks one egress is probed by the other; a greylisted address stays with its egress', async () => {
  const list = { rows: 120, domains: 2 }
  const cluster = await openCluster(await tempPostgres(), {
    scenario: TWO_EGRESSES,
    args: FAST_ARGS,
  })
  const api = await cluster.start('serve', 'server', ['--work', 'off'])
  await cluster.start('worker', 'north', ['--egress', 'north', '--source-address', '127.0.0.2'])
  await cluster.start('worker', 'south', ['--egress', 'south', '--source-address', '127.0.0.3'])
  // Members refresh every three seconds, so each knows the other by now.
  await wait(4_000)
  const job = await submitOne(cluster, api, list)
  await untilFinished(cluster, [job])
  expect(await ledgerOf(cluster, { list })).toMatchObject(completeLedger(list))
  const { hosts } = await cluster.world.counters()
  // Each address is probed twice: a retry from another egress would be greylisted again.
  const probed = [...(hosts['mx.d1.test']?.recipients.values() ?? [])]
  expect(probed.filter(times => times > 2)).toEqual([])
})
