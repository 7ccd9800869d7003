import { describe, expect, test } from 'vitest'
import { deregister, register } from '../../../src/cluster/members.ts'
import { releaseClaims } from '../../../src/jobs/member-claims.ts'
import { MINUTE, yieldToEventLoop } from '../../../src/platform/clock.ts'
import { cluster } from '../../support/cluster-jobs.ts'
import { isRandomRecipient, toRecipients } from '../../support/engine.ts'
import { FAST_TIMINGS } from '../../support/fast-timings.ts'
import { waitUntil } from '../../support/wait.ts'

const script = toRecipients(to =>
  isRandomRecipient(to) ? '550 5.1.1 No such user' : '250 2.1.5 Ok',
)
const users = (count: number, domain: string) =>
  Array.from({ length: count }, (_, n) => `u${n}@${domain}`)

type Cluster = Awaited<ReturnType<typeof cluster>>

/** A membership whose loss and silence the test reports. */
function createMembership({ database }: Cluster) {
  const listeners = { lost: new Set<() => void>(), silent: new Set<() => void>() }
  const listen = (set: Set<() => void>) => (listener: () => void) => {
    set.add(listener)
    return () => void set.delete(listener)
  }
  const member = { id: 'mem_1', onLost: listen(listeners.lost), onSilent: listen(listeners.silent) }
  const own = { role: 'worker' as const, name: 'host:1', version: '0', egresses: ['default'] }
  return {
    member,
    listeners,
    join: (id: string) => register(database, { ...own, id }),
    report: (kind: keyof typeof listeners) => {
      for (const listener of [...listeners[kind]]) listener()
    },
  }
}

const listItems = async ({ database }: Cluster) =>
  (await database.db.selectFrom('item').select(['state', 'holder']).distinct().execute()).map(
    ({ state, holder }) => `${state} ${holder}`,
  )

describe('a member with one connection that is not answered', () => {
  async function start() {
    let connections = 0
    const home = await cluster({
      script: {
        greeting: () => (connections++ === 0 ? null : '220 mx.d0.test ESMTP'),
        answer: script,
      },
      domains: 1,
    })
    const membership = createMembership(home)
    await membership.join('mem_1')
    await home.submit('job_1', users(5, 'd0.test'))
    const worker = home.work(membership.member, { greetingTimeoutMs: '60000' })
    worker.take('job_1')
    await waitUntil(() => home.mx.sessions.length === 1)
    expect(await listItems(home)).toEqual(['probing mem_1'])
    return { home, worker, ...membership }
  }

  test('aborts it when it may soon expire, and continues under the same ID', async () => {
    const { home, report } = await start()
    report('silent')
    expect(await home.finished('job_1')).toMatchObject({ deliverable: 5 })
    expect(home.mx.sessions[0]?.closed).toBe(true)
    expect(await listItems(home)).toEqual(['done null'])
    expect(home.asked(users(5, 'd0.test')).toSorted()).toEqual(users(5, 'd0.test'))
  })

  test('probes nothing after it has expired until it has a new ID, and then all its rows', async () => {
    const { home, member, join, report } = await start()
    await deregister(home.database, 'mem_1', releaseClaims)
    report('lost')
    await waitUntil(() => home.mx.sessions[0]?.closed === true)
    expect(await listItems(home)).toEqual(['queued null'])
    await join('mem_2')
    expect(home.mx.sessions).toHaveLength(1)
    member.id = 'mem_2'
    expect(await home.finished('job_1')).toMatchObject({ deliverable: 5 })
    expect(await listItems(home)).toEqual(['done null'])
  })

  test('has no membership listeners once it has stopped', async () => {
    const { home, worker, report, listeners } = await start()
    report('silent')
    await home.finished('job_1')
    await worker.stop()
    expect([listeners.lost.size, listeners.silent.size]).toEqual([0, 0])
  })
})

test('a member that ends its work on a list at any moment keeps no row of it', async () => {
  const home = await cluster({ script, domains: 8 })
  const { member, join, report } = createMembership(home)
  await join('mem_1')
  const texts = Array.from({ length: 8 }, (_, n) => users(25, `d${n}.test`)).flat()
  await home.submit('job_1', texts)
  const worker = home.work(member, { recipientsPerSession: '5', sessionsPerOperator: '1' })
  worker.take('job_1')
  for (let n = 0; n < 40; n++) {
    for (let turn = 0; turn < 10 * n; turn++) await yieldToEventLoop()
    report('silent')
  }
  expect(await home.finished('job_1')).toMatchObject({ done: 200, deliverable: 200 })
  expect(await listItems(home)).toEqual(['done null'])
})

test('rows for which an operator has no room wait in the database with their route', async () => {
  const released = Promise.withResolvers<void>()
  const home = await cluster({
    script: async (line, session) => {
      if (line.startsWith('RCPT')) await released.promise
      return script(line, session)
    },
    domains: 2,
    timings: { ...FAST_TIMINGS, worker: { ...FAST_TIMINGS.worker, drainMs: MINUTE } },
  })
  const texts = [...users(200, 'd0.test'), ...users(5, 'd1.test')]
  const flags = { recipientsPerSession: '5', sessionsPerOperator: '2' }
  const { worker } = await home.join(flags)
  await home.submit('job_1', texts)
  worker.take('job_1')
  const waiting = () =>
    home.database.db
      .selectFrom('item')
      .select(['operator', 'domain', 'holder', 'due_at'])
      .distinct()
      .where('state', '=', 'routed')
      .execute()
  await waitUntil(async () => (await waiting()).length > 0)
  expect(await waiting()).toEqual([
    { operator: 'd0.test', domain: 'd0.test', holder: null, due_at: 0 },
  ])
  const { mx } = home
  await waitUntil(() => mx.sessions.some(({ to }) => to.host === 'mx.d1.test'))
  released.resolve()
  expect(await home.finished('job_1')).toMatchObject({ done: 205, deliverable: 205 })
  expect(home.asked(texts).toSorted()).toEqual(texts.toSorted())
  expect(home.loggedErrors).toEqual([])
})

test('rows of a member that holds them are left to it, and are taken when it has gone', async () => {
  const home = await cluster({ script, domains: 1 })
  const { member, join } = createMembership(home)
  await join('mem_1')
  await join('mem_gone')
  await home.submit('job_1', users(4, 'd0.test'))
  await home.database.db
    .updateTable('item')
    .set({ state: 'probing', holder: 'mem_gone' })
    .where('position', '>', 2)
    .execute()
  home.work(member).take('job_1')
  await home.until('job_1', ({ done }) => done === 2)
  expect((await listItems(home)).toSorted()).toEqual(['done null', 'probing mem_gone'])
  await deregister(home.database, 'mem_gone', releaseClaims)
  expect(await home.finished('job_1')).toMatchObject({ deliverable: 4 })
})
