import { join } from 'node:path'
import type { KyselyPlugin } from 'kysely'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listMembers, register } from '../../src/cluster/members.ts'
import {
  DEFAULT_CLUSTER_TIMINGS,
  type Membership,
  startMembership,
} from '../../src/cluster/membership.ts'
import type { Database } from '../../src/db/database.ts'
import { memberClaims } from '../../src/jobs/member-claims.ts'
import type { Log } from '../../src/platform/log.ts'
import { claimItems } from '../support/claims.ts'
import { type FakeClock, fakeClock } from '../support/clock.ts'
import { addJob, fileAll, tempDatabase, tempFolder } from '../support/database.ts'
import { countedRandom } from '../support/random.ts'
import { drainEventLoop } from '../support/wait.ts'

const { beatMs: BEAT_MS, expiryMs: EXPIRY_MS, silentMs: SILENT_MS } = DEFAULT_CLUSTER_TIMINGS

type Process = {
  readonly membership: Membership
  readonly database: Database
  /** False while it is cut off from the database. */
  isConnected: boolean
  readonly lost: string[]
  /** When it was notified that its heartbeats fail, ms since it was cut off. */
  readonly silent: number[]
  readonly messages: string[]
}

/** Starts processes on one database, with one clock. */
async function cluster() {
  const clock = fakeClock()
  const file = join(tempFolder(), 'ev.sqlite')
  const database = await tempDatabase({ clock, file })
  const random = countedRandom()
  const startProcess = async (name: string, egresses = [name]): Promise<Process> => {
    const own = await tempDatabase({ clock, file })
    const messages: string[] = []
    const record: Log['warn'] = message => void messages.push(message)
    const log = { debug() {}, info() {}, warn: record, error: record }
    const process = { isConnected: true, lost: [] as string[], silent: [] as number[], messages }
    const cut = unreachable(own, () => !process.isConnected)
    const deps = { random, log, role: 'worker' as const, name, version: '1', egresses }
    const membership = await startMembership({ ...deps, claims: memberClaims, database: cut })
    membership.onLost(() => process.lost.push(membership.id))
    membership.onSilent(() => process.silent.push(clock.monotonicNow()))
    onTestFinished(async () => {
      process.isConnected = true
      await membership.stop()
    })
    return Object.assign(process, { membership, database: cut })
  }
  return { clock, database, startProcess, members: () => listNames(database) }
}

const listNames = async (database: Database) =>
  (await listMembers(database)).map(({ name }) => name).sort()

/** The database as seen by a process that may be cut off from it. */
function unreachable(database: Database, isCut: () => boolean): Database {
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      if (isCut()) throw Object.assign(new Error('cut off'), { code: 'ECONNREFUSED' })
      return node
    },
    transformResult: async ({ result }) => result,
  }
  return { ...database, db: database.db.withPlugin(plugin) }
}

/** Advances the clock while the database works. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) {
    await clock.advance(500)
    await drainEventLoop()
  }
}

describe('a member', () => {
  test('is listed while it sends heartbeats, and gone once it deregisters', async () => {
    const { clock, startProcess, members } = await cluster()
    const a = await startProcess('a')
    const b = await startProcess('b')
    await pass(clock, 60_000)
    expect(await members()).toEqual(['a', 'b'])
    await b.membership.stop()
    await b.membership.stop()
    expect(await members()).toEqual(['a'])
    await pass(clock, 60_000)
    expect([a.lost, b.lost, a.messages, b.messages]).toEqual([[], [], [], []])
  })

  test('that is killed expires within fifteen seconds, and others get its claims', async () => {
    const { clock, startProcess, members, database } = await cluster()
    const a = await startProcess('a')
    await addJob(database, ['1@x.test', '2@x.test'], 'job_a')
    await fileAll(database, 'job_a')
    const share = { jobId: 'job_a', max: 1 }
    // It registers, claims, and sends no more heartbeats.
    await register(database, { ...KILLED, id: 'mem_killed' })
    expect(await claimItems(database, { ...share, holder: 'mem_killed' })).toHaveLength(1)
    await pass(clock, EXPIRY_MS)
    expect(await members()).toEqual(['a', 'killed'])
    await pass(clock, 5_000)
    expect(await members()).toEqual(['a'])
    expect(a.messages).toEqual(['member expired'])
    const rest = await claimItems(database, { ...share, max: 9, holder: a.membership.id })
    expect(rest).toEqual([1, 2])
  })

  test('lists the egresses of all members, and always its own', async () => {
    const { clock, startProcess } = await cluster()
    const a = await startProcess('a', ['paris', 'oslo'])
    expect(a.membership.egresses()).toEqual(['oslo', 'paris'])
    const b = await startProcess('b', ['rome', 'oslo'])
    await pass(clock, BEAT_MS)
    expect(a.membership.egresses()).toEqual(['oslo', 'paris', 'rome'])
    expect(b.membership.egresses()).toEqual(['oslo', 'paris', 'rome'])
    await b.membership.stop()
    await pass(clock, BEAT_MS)
    expect(a.membership.egresses()).toEqual(['oslo', 'paris'])
  })
})

const KILLED = { role: 'worker', name: 'killed', version: '1', egresses: [] } as const

describe('a member that is cut off from the database', () => {
  test('expires, is notified once when it is back, and continues under a new ID', async () => {
    const { clock, startProcess, members } = await cluster()
    const a = await startProcess('a')
    const b = await startProcess('b')
    const { id } = b.membership
    b.isConnected = false
    await pass(clock, 15_000)
    expect(await members()).toEqual(['a'])
    expect(b.lost).toEqual([])
    b.isConnected = true
    await pass(clock, BEAT_MS)
    expect(b.lost).toEqual([id])
    expect(b.membership.id).not.toBe(id)
    expect(await members()).toEqual(['a', 'b'])
    await pass(clock, 60_000)
    expect([a.lost, b.lost]).toEqual([[], [id]])
    expect(b.messages).toEqual([
      'membership check failed',
      'membership heartbeat failed',
      'membership expired; aborting in-flight work',
    ])
  })

  test('is notified each time before others can expire it, and not while its heartbeats succeed', async () => {
    const { clock, startProcess, members } = await cluster()
    await startProcess('a')
    const b = await startProcess('b')
    await pass(clock, 60_000)
    expect(b.silent).toEqual([])
    for (const before of [0, 1]) {
      const cutAt = clock.monotonicNow()
      b.isConnected = false
      while (b.silent.length === before) await pass(clock, 500)
      expect(await members()).toEqual(['a', 'b'])
      const silentMs = clock.monotonicNow() - cutAt
      expect(silentMs).toBeGreaterThan(SILENT_MS - BEAT_MS - 500)
      expect(silentMs).toBeLessThanOrEqual(SILENT_MS + 500)
      await pass(clock, 5_000)
      expect(await members()).toEqual(['a'])
      b.isConnected = true
      await pass(clock, 5_000)
      expect(await members()).toEqual(['a', 'b'])
    }
    await pass(clock, 60_000)
    expect(b.silent).toHaveLength(2)
  })

  test('does not call listeners that unsubscribed', async () => {
    const { clock, startProcess } = await cluster()
    await startProcess('a')
    const b = await startProcess('b')
    let calls = 0
    for (const listen of [b.membership.onLost, b.membership.onSilent]) listen(() => calls++)()
    b.isConnected = false
    await pass(clock, 15_000)
    b.isConnected = true
    await pass(clock, BEAT_MS)
    expect([calls, b.lost.length]).toEqual([0, 1])
  })

  test('that stops then leaves its expiry to the others', async () => {
    const { clock, startProcess, members } = await cluster()
    await startProcess('a')
    const b = await startProcess('b')
    b.isConnected = false
    await b.membership.stop()
    expect(await members()).toEqual(['a', 'b'])
    await pass(clock, 15_000)
    expect(await members()).toEqual(['a'])
    expect(b.lost).toEqual([])
  })
})

describe('an outage of the database', () => {
  test.each([1_000, 3_000, 5_000, 7_000, 9_500, 20_000, 600_000])(
    'of %i ms expires no member, whichever is back first',
    async ms => {
      const { clock, startProcess, members } = await cluster()
      const all = [await startProcess('a'), await startProcess('b'), await startProcess('c')]
      await pass(clock, 4_500)
      for (const one of all) one.isConnected = false
      await pass(clock, ms)
      // The last one is back as late as a member with regular retries may be.
      for (const one of all) {
        one.isConnected = true
        await pass(clock, 1_000)
      }
      await pass(clock, 60_000)
      expect(await members()).toEqual(['a', 'b', 'c'])
      expect(all.map(({ lost }) => lost)).toEqual([[], [], []])
    },
  )

  test('does not protect a member that stopped during it, which expires once the others are back', async () => {
    const { clock, startProcess, members } = await cluster()
    const [a, b] = [await startProcess('a'), await startProcess('b')]
    for (const one of [a, b]) one.isConnected = false
    await pass(clock, 30_000)
    a.isConnected = true
    await pass(clock, EXPIRY_MS)
    expect(await members()).toEqual(['a', 'b'])
    await pass(clock, 5_000)
    expect(await members()).toEqual(['a'])
  })
})

test('a clock change forward or back expires no live member and prevents no expiry', async () => {
  const { clock, startProcess, members, database } = await cluster()
  const all = [await startProcess('a'), await startProcess('b')]
  for (const ms of [3_600_000, -7_200_000, 11_000, -11_000]) {
    clock.jump(ms)
    await pass(clock, 30_000)
  }
  expect(await members()).toEqual(['a', 'b'])
  expect(all.map(({ lost }) => lost)).toEqual([[], []])
  await register(database, { ...KILLED, id: 'mem_killed' })
  clock.jump(-3_600_000)
  await pass(clock, 20_000)
  expect(await members()).toEqual(['a', 'b'])
})
